//! A write that the leader of the group answers.

use super::Connection;
use super::waiting::gone;
use crate::clients::State;
use crate::group::{Unanswered, Write};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Connection {
    /// Sends a request on to the leader, and answers with its reply. If that does not come, or says
    /// that nobody knows, the connection ends.
    pub(super) async fn forward(&mut self, request: Vec<u8>) -> io::Result<()> {
        self.slow = None;
        self.output.begin();
        let server = Arc::clone(&self.server);
        let Some(group) = &server.group else {
            return Ok(());
        };
        server.stats.forwarded.fetch_add(1, Relaxed);
        self.client.set_state(State::Blocked);
        let write = Write {
            request: &request,
            user: self.client.user(),
            database: self.session.database,
            protocol: self.output.protocol,
            most: self.server.live.max_output_buffer.bytes(),
        };
        let answer = tokio::select! {
            answer = group.forward(&write, &server.store) => answer,
            () = gone(&self.client, &self.stream.socket) => return Ok(()),
        };
        self.client.is_active();
        self.client.set_state(State::Working);
        // Others ran meanwhile.
        self.turn.again();
        let lost = match answer {
            Ok(answer) if answer.starts_with(b"-TRYAGAIN") => {
                let text = answer[1..].trim_ascii_end();
                String::from_utf8_lossy(text).into_owned()
            }
            Ok(answer) => {
                self.output.encoded(&answer);
                self.output.finish();
                return self.send(false).await;
            }
            Err(Unanswered::Refused(text)) => {
                self.stripe().error(text.as_bytes());
                self.output.fail(text.as_bytes());
                self.output.finish();
                return self.send(false).await;
            }
            Err(Unanswered::Lost(text)) => text,
        };
        self.end_with(&lost).await?;
        self.close().await?;
        Err(io::Error::other(lost))
    }
}
