//! Spans of commands for OpenTelemetry, with the feature `otel`.
//!
//! A thread hands a span to the exporter's queue, which drops what does not fit, and goes on. One
//! thread of the exporter sends what is queued to a collector, by HTTP. So a collector that is slow
//! or gone costs spans and no command.
//!
//! Short commands are timed in runs, so a span is a run of one command, with how many it had. Of
//! all runs one in some is sampled; those that took long all are.

mod collector;
#[cfg(test)]
mod tests;

use crate::commands::Command;
use collector::Collector;
use opentelemetry::KeyValue;
use opentelemetry::trace::{Span, SpanKind, Status, Tracer, TracerProvider};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use std::cell::Cell;
use std::env;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// The variables that name the collector: of traces, or of everything, without the path.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];

/// The variable that has the share of spans that are kept, if it is not this one.
const SHARE: &str = "OTEL_TRACES_SAMPLER_ARG";
const USUAL_SHARE: f64 = 0.001;

/// What the exporter runs with.
static SPANS: OnceLock<Spans> = OnceLock::new();

/// Why there are no spans.
#[derive(Debug, Error)]
pub(crate) enum SpansError {
    /// A share that is none.
    #[error("{SHARE} is '{0}'; it is a number above 0, up to 1: the share of spans that are kept")]
    Share(String),
    /// An address that nothing can be sent to.
    #[error("{variable} is '{value}': {problem}")]
    Endpoint {
        /// The variable.
        variable: &'static str,
        /// What it has.
        value: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The exporter cannot be made.
    #[error("spans cannot be sent: {0}")]
    Exporter(String),
}

/// What makes spans of commands.
struct Spans {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    /// The number of runs of which one is sampled.
    every: u64,
}

thread_local! {
    /// Runs until the next one that is sampled.
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

/// Sends what is queued when the server ends.
pub(crate) struct Ending(());

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(spans) = SPANS.get()
            && let Err(error) = spans.provider.shutdown()
        {
            tracing::warn!("the last spans are lost: {error}");
        }
    }
}

/// Begins to send spans, if a collector is named.
pub(crate) fn begin() -> Result<Option<Ending>, SpansError> {
    let named = |variable| {
        Some((
            variable,
            env::var(variable).ok().filter(|it| !it.is_empty())?,
        ))
    };
    let Some((variable, value)) = ENDPOINTS.into_iter().find_map(named) else {
        return Ok(None);
    };
    let share = env::var(SHARE).ok();
    let spans = Spans::new(variable, value, share.as_deref())?;
    tracing::info!("one run of commands in {} is sent as a span", spans.every);
    // A second server of a process sends with the first one's settings.
    let _ = SPANS.set(spans);
    Ok(Some(Ending(())))
}

/// Some commands have run together.
#[inline]
pub(crate) fn ran(command: &Command, time: Duration, (count, failed): (u64, u64), is_slow: bool) {
    if let Some(spans) = SPANS.get() {
        spans.ran(command, time, (count, failed), is_slow);
    }
}

impl Spans {
    fn new(variable: &'static str, value: String, share: Option<&str>) -> Result<Self, SpansError> {
        let share = match share {
            None | Some("") => USUAL_SHARE,
            Some(text) => match text.parse() {
                Ok(share) if share > 0.0 && share <= 1.0 => share,
                _ => return Err(SpansError::Share(text.escape_debug().to_string())),
            },
        };
        let endpoint = if variable == ENDPOINTS[0] {
            value.clone()
        } else {
            format!("{}/v1/traces", value.trim_end_matches('/'))
        };
        if let Err(problem) = collector::check(&endpoint) {
            return Err(SpansError::Endpoint {
                variable,
                value,
                problem,
            });
        }
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Collector)
            .with_endpoint(endpoint)
            .build()
            .map_err(|error| SpansError::Exporter(error.to_string()))?;
        let name = env::var("OTEL_SERVICE_NAME").unwrap_or_else(|_| "tremula".to_owned());
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            // What comes here has been sampled.
            .with_sampler(Sampler::AlwaysOn)
            .with_resource(Resource::builder().with_service_name(name).build())
            .build();
        Ok(Self {
            tracer: provider.tracer("tremula"),
            provider,
            every: (1.0 / share).round() as u64,
        })
    }

    fn ran(&self, command: &Command, time: Duration, (count, failed): (u64, u64), is_slow: bool) {
        let is_sampled = LEFT.with(|left| {
            let now = left.get();
            left.set(if now == 0 { self.every - 1 } else { now - 1 });
            now == 0
        });
        if is_sampled || is_slow {
            self.send(command, time, (count, failed), is_slow);
        }
    }

    #[cold]
    fn send(&self, command: &Command, time: Duration, (count, failed): (u64, u64), is_slow: bool) {
        let end = SystemTime::now();
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let name = command.full_name.to_ascii_uppercase().replace('|', " ");
        let attributes = [
            KeyValue::new("db.system.name", "tremula"),
            KeyValue::new("db.operation.name", name.clone()),
            KeyValue::new("db.operation.batch.size", number(count)),
            KeyValue::new("tremula.failed", number(failed)),
            KeyValue::new("tremula.slow", is_slow),
        ];
        let builder = self
            .tracer
            .span_builder(name)
            .with_kind(SpanKind::Server)
            .with_start_time(end.checked_sub(time).unwrap_or(end))
            .with_attributes(attributes);
        let mut span = self.tracer.build(builder);
        if failed > 0 {
            span.set_status(Status::error(format!("{failed} of {count} failed")));
        }
        span.end_with_timestamp(end);
    }
}
