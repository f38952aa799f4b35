#!/usr/bin/env escript
%% -*- erlang -*-
%%! +sbwt none +sbwtdcpu none +sbwtdio none +Bi
%%
%% The lab's contestants in Erlang: ETS tables, and processes.
%%
%% Started once by the lab and driven by lines on standard input; it answers each with one line on
%% standard output. It ends when its input ends. Schedulers do not spin (+sbwt none), so that this
%% machine costs nothing while other contestants are measured; Ctrl-C is left to the lab (+Bi).
%%
%%   request                                             files read and removed
%%   ranges KIND KEYS THREADS
%%   mix KIND RANGE STEP THREADS SEQUENCE WARM COUNTED   prefill, streams
%%   fill KIND THREADS                                   keys
%%   ets KIND ROWS RANGE STEP THREADS SEQUENCE SELECTED PERIOD WARM COUNTED
%%                                                       prefill, streams
%%   bench KIND OPERATION ROWS WARM COUNTED               prefill, streams (which is empty)
%%   signals QUEUE TRAFFIC WORDS SENDERS MOST WARM COUNTED
%%   ping_pong QUEUE WARM COUNTED
%%   counter TYPE DECENTRALIZED THREADS START ROWS PERIOD WARM COUNTED
%%
%% WARM and COUNTED are milliseconds: work in the former does not count. KIND is `old` (one lock a
%% table), `new` (write_concurrency: the contention-adapting tree) or `set` (a set with
%% write_concurrency; for `ets` and `bench` only). QUEUE is `off_heap` or `on_heap`: where the
%% receiver keeps messages that it has not yet received. TRAFFIC is `live`, or `drain`: the receiver
%% sleeps until everything is sent. MOST is the greatest number of messages to send.
%%
%% The answer is `error TEXT`, or `ok` and numbers; for tables
%%   NANOSECONDS OPERATIONS BYTES         BYTES: what ETS says the full table takes; 0 for a mix
%% for signals, times in nanoseconds: all, from the first send to the last send, of receiving after
%% the last send
%%   ALL MESSAGES SENDING RECEIVING
%% for ping_pong, with quantiles of the time of a round trip
%%   NANOSECONDS ROUND_TRIPS P50 P99 P99.9
%%
%% Every worker is a process that waits for `go`; the time runs from the first worker's start
%% to the last worker's end, by the workers' own clocks, as it does on the Rust side.

-module(lab).
-mode(compile).
-export([main/1]).

%% Kinds of operation: the two low bits of a word of a stream. The rest is the key.
-define(LOOKUP, 0).
-define(INSERT, 1).
-define(REMOVE, 2).
-define(SEQUENCE, 3).

%% How many consecutive keys a select of a range spans.
-define(SELECTED_KEYS, 1000).

%% The length of the binary in a row.
-define(BINARY_BYTES, 64).

%% The length of an inserted list, the number of keys with the same prefix, and the number of
%% searches in a round.
-define(LIST_LENGTH, 100).
-define(GROUP, 100).
-define(SEARCHES, 20).

%% Preparing rounds may take this many times as long as the rounds.
-define(PATIENCE, 10).

%% How many operations a worker does before it looks at the stop flag again.
-define(STRIDE, 64).

main(_) ->
    io:format("ready Erlang/OTP ~s (erts ~s, ~p)~n",
              [erlang:system_info(otp_release), erlang:system_info(version),
               erlang:system_info(emu_flavor)]),
    serve().

serve() ->
    case io:get_line("") of
        Line when is_list(Line) ->
            Answer = try request(string:lexemes(Line, " \n")) of
                         Numbers ->
                             ["ok" | [[" ", integer_to_list(N)] || N <- tuple_to_list(Numbers)]]
                     catch
                         _:Reason ->
                             io_lib:format("error ~0p", [Reason])
                     end,
            io:put_chars([Answer, "\n"]),
            serve();
        _ ->
            %% Removes the folder if it is empty, in case the lab no longer can.
            {ok, Folder} = file:get_cwd(),
            file:del_dir(Folder),
            halt(0)
    end.

request(["ranges", Kind, Keys, Threads]) ->
    insert_disjoint_ranges(options(Kind), list_to_integer(Keys), list_to_integer(Threads));
request(["mix", Kind, Range, Step, Threads, Sequence, Warm, Counted]) ->
    ordered_mix(options(Kind), list_to_integer(Range), list_to_integer(Step),
                list_to_integer(Threads), list_to_integer(Sequence),
                list_to_integer(Warm), list_to_integer(Counted));
request(["fill", Kind, Threads]) ->
    fill(options(Kind), list_to_integer(Threads));
request(["ets", Kind, Rows, Range, Step, Threads, Sequence, Selected, Period, Warm, Counted]) ->
    ets_throughput(options(Kind), Rows, list_to_integer(Range), list_to_integer(Step),
                   list_to_integer(Threads), list_to_integer(Sequence),
                   list_to_existing_atom(Selected), list_to_integer(Period),
                   list_to_integer(Warm), list_to_integer(Counted));
request(["bench", Kind, Operation, Rows, Warm, Counted]) ->
    ets_bench(options(Kind), list_to_existing_atom(Operation), Rows, list_to_integer(Warm),
              list_to_integer(Counted));
request(["signals", Queue, Traffic, Words, Senders, Most, Warm, Counted]) ->
    signals(queue(Queue), Traffic, list_to_integer(Words), list_to_integer(Senders),
            list_to_integer(Most), list_to_integer(Warm), list_to_integer(Counted));
request(["counter", Type, Decentralized, Threads, Start, Rows, Period, Warm, Counted]) ->
    counter_scaling([list_to_existing_atom(Type), {write_concurrency, true},
                     {decentralized_counters, list_to_existing_atom(Decentralized)}],
                    list_to_integer(Threads), list_to_integer(Start), list_to_integer(Rows),
                    list_to_integer(Period), list_to_integer(Warm), list_to_integer(Counted));
request(["ping_pong", Queue, Warm, Counted]) ->
    ping_pong(queue(Queue), list_to_integer(Warm), list_to_integer(Counted)).

options("old") -> [ordered_set, {write_concurrency, false}];
options("new") -> [ordered_set, {write_concurrency, true}];
options("set") -> [set, {write_concurrency, true}].

queue("off_heap") -> off_heap;
queue("on_heap") -> on_heap.

with_table(Options, Work) ->
    Table = ets:new(table, [public, {read_concurrency, true} | Options]),
    try
        Work(Table)
    after
        ets:delete(Table),
        erlang:garbage_collect()
    end.

%%% The workloads

%% Worker I of P inserts the integers from I*N/P up to (I+1)*N/P, in ascending order.
insert_disjoint_ranges(Options, Keys, Threads) ->
    with_table(Options, fun(Table) ->
        {Nanoseconds, _} = together(Threads, infinity, fun(Index, _Stop) ->
            insert_range(Index * Keys div Threads, (Index + 1) * Keys div Threads, Table)
        end),
        check(Table, Keys),
        {Nanoseconds, Keys, bytes(Table)}
    end).

insert_range(End, End, _Table) -> 0;
insert_range(Key, End, Table) ->
    ets:insert(Table, {Key}),
    insert_range(Key + 1, End, Table).

%% Worker I of P inserts its share of the keys in the file, in the file's order.
fill(Options, Threads) ->
    Keys = read("keys"),
    Count = byte_size(Keys) div 8,
    with_table(Options, fun(Table) ->
        {Nanoseconds, _} = together(Threads, infinity, fun(Index, _Stop) ->
            From = Index * Count div Threads,
            To = (Index + 1) * Count div Threads,
            insert_all(binary:part(Keys, From * 8, (To - From) * 8), Table)
        end),
        check(Table, ets:info(Table, size)),
        {Nanoseconds, Count, bytes(Table)}
    end).

insert_all(<<Key:64/little, Rest/binary>>, Table) ->
    ets:insert(Table, {Key}),
    insert_all(Rest, Table);
insert_all(<<>>, _Table) -> 0.

%% Every worker runs its stream, again and again with the keys rotated by a further Step, until the
%% time is up: first to warm up, from another rotation, and then to be counted.
ordered_mix(Options, Range, Step, Threads, Sequence, Warm, Counted) ->
    Prefill = read("prefill"),
    Streams = read("streams"),
    Length = byte_size(Streams) div Threads,
    with_table(Options, fun(Table) ->
        prefill(Prefill, Table),
        Run = fun(Milliseconds, Offset) ->
            together(Threads, Milliseconds, fun(Index, Stop) ->
                Stream = binary:part(Streams, Index * Length, Length),
                passes(Stream, Table, Range, Step, Offset, Sequence, Stop, 0)
            end)
        end,
        Run(Warm, Range div 2),
        {Nanoseconds, Operations} = Run(Counted, 0),
        check(Table, ets:info(Table, size)),
        {Nanoseconds, Operations, 0}
    end).

prefill(<<Key:32/little, Rest/binary>>, Table) ->
    ets:insert(Table, {Key}),
    prefill(Rest, Table);
prefill(<<>>, _Table) -> ok.

passes(Stream, Table, Range, Step, Offset, Sequence, Stop, Done) ->
    case operate(Stream, ?STRIDE, Done, Table, Range, Offset, Sequence, Stop) of
        {stopped, Operations} ->
            Operations;
        {passed, Operations} ->
            passes(Stream, Table, Range, Step, rotate(Offset + Step, Range), Sequence, Stop,
                   Operations)
    end.

operate(<<Word:32/little, Rest/binary>>, Left, Done, Table, Range, Offset, Sequence, Stop)
  when Left > 0 ->
    Key = rotate((Word bsr 2) + Offset, Range),
    case Word band 3 of
        ?LOOKUP -> ets:lookup(Table, Key);
        ?INSERT -> ets:insert(Table, {Key});
        ?REMOVE -> ets:delete(Table, Key);
        ?SEQUENCE -> sequence(Sequence, Table, Key)
    end,
    operate(Rest, Left - 1, Done + 1, Table, Range, Offset, Sequence, Stop);
operate(<<>>, _Left, Done, _Table, _Range, _Offset, _Sequence, Stop) ->
    case atomics:get(Stop, 1) of
        0 -> {passed, Done};
        1 -> {stopped, Done}
    end;
operate(Stream, 0, Done, Table, Range, Offset, Sequence, Stop) ->
    case atomics:get(Stop, 1) of
        0 -> operate(Stream, ?STRIDE, Done, Table, Range, Offset, Sequence, Stop);
        1 -> {stopped, Done}
    end.

rotate(Key, Range) when Key >= Range -> Key - Range;
rotate(Key, _Range) -> Key.

sequence(0, _Table, _Key) -> ok;
sequence(Left, Table, Key) ->
    case ets:next(Table, Key) of
        '$end_of_table' -> ok;
        Next -> sequence(Left - 1, Table, Next)
    end.

%% Senders send to one receiver until the time is up; to warm up, they send to another one before.
signals(Queue, Traffic, Words, Senders, Most, Warm, Counted) ->
    stream(Queue, Traffic, Words, Senders, Most, Warm),
    stream(Queue, Traffic, Words, Senders, Most, Counted).

stream(Queue, Traffic, Words, Senders, Most, Milliseconds) ->
    Driver = self(),
    Receiver = spawn_opt(fun() -> count(Driver, Senders, 0) end,
                         [link, {message_queue_data, Queue}]),
    Traffic =:= "drain" andalso erlang:suspend_process(Receiver),
    {Begun, Sent, Messages} = run(Senders, Milliseconds, fun(_Index, Stop) ->
        send(Receiver, Words, 0, Most div Senders, Stop)
    end),
    Resumed = erlang:monotonic_time(),
    Traffic =:= "drain" andalso erlang:resume_process(Receiver),
    %% The last sender reads the clock after its message, which the receiver may have by then.
    Received = receive {received, Receiver, Messages, Time} -> max(Time, Sent) end,
    {nanoseconds(Received - Begun), Messages, nanoseconds(Sent - Begun),
     nanoseconds(max(Received, Resumed) - Resumed)}.

%% Makes a new message each time, as the Rust side does, and sends the receiver a hint at the end.
send(Receiver, Words, Sent, Most, Stop) ->
    send_some(Receiver, Words, Sent, ?STRIDE),
    Now = Sent + ?STRIDE,
    case atomics:get(Stop, 1) of
        0 when Now < Most -> send(Receiver, Words, Now, Most, Stop);
        _ -> Receiver ! done, Now
    end.

send_some(_Receiver, _Words, _Number, 0) -> ok;
send_some(Receiver, 1, Number, Left) ->
    Receiver ! Number,
    send_some(Receiver, 1, Number + 1, Left - 1);
send_some(Receiver, Words, Number, Left) ->
    Receiver ! erlang:make_tuple(Words, Number),
    send_some(Receiver, Words, Number + 1, Left - 1).

%% Counts messages until every sender has reported that it is done.
count(Driver, 0, Messages) ->
    Driver ! {received, self(), Messages, erlang:monotonic_time()};
count(Driver, Senders, Messages) ->
    receive
        done -> count(Driver, Senders - 1, Messages);
        _ -> count(Driver, Senders, Messages + 1)
    end.

%% Sends one message to another process and back, again and again.
ping_pong(Queue, Warm, Counted) ->
    Driver = self(),
    Options = [link, {message_queue_data, Queue}],
    Echo = spawn_opt(fun echo/0, Options),
    spawn_opt(fun() ->
        round_trips(Echo, Warm),
        Driver ! {round_trips, round_trips(Echo, Counted)},
        Echo ! done
    end, Options),
    Times = receive {round_trips, All} -> lists:sort(All) end,
    Count = length(Times),
    Quantile = fun(Thousandths) ->
        nanoseconds(lists:nth(Count * Thousandths div 1000 + 1, Times))
    end,
    {nanoseconds(lists:sum(Times)), Count, Quantile(500), Quantile(990), Quantile(999)}.

echo() ->
    receive
        done -> ok;
        {From, Message} -> From ! Message, echo()
    end.

round_trips(Echo, Milliseconds) ->
    Begun = erlang:monotonic_time(),
    End = Begun + erlang:convert_time_unit(Milliseconds, millisecond, native),
    round_trips(Echo, 0, Begun, End, []).

round_trips(Echo, Number, Before, End, Times) ->
    Echo ! {self(), Number},
    receive Number -> ok end,
    case erlang:monotonic_time() of
        Now when Now < End -> round_trips(Echo, Number + 1, Now, End, [Now - Before | Times]);
        Now -> [Now - Before | Times]
    end.

%% Workers insert rows of their own and delete them, in alternating runs of Rows; one operation in
%% Period asks for the size instead. The warm-up has rows of its own, which stay as they are.
counter_scaling(Options, Threads, Start, Rows, Period, Warm, Counted) ->
    with_table(Options, fun(Table) ->
        [ets:insert(Table, {-Key}) || Key <- lists:seq(1, Start)],
        Run = fun(Milliseconds, First) ->
            together(Threads, Milliseconds, fun(Index, Stop) ->
                Most = Start + 2 * Threads * Rows,
                Work = {Table, First + Index * Rows, Rows, Period, Start, Most, Stop},
                count_up(Work, 0, 0, Period)
            end)
        end,
        Run(Warm, Threads * Rows),
        {Nanoseconds, Operations} = Run(Counted, 0),
        Size = ets:info(Table, size),
        Size = length(ets:tab2list(Table)),
        {Nanoseconds, Operations, 0}
    end).

%% Number counts the rows inserted or deleted, Done the operations.
count_up({_, _, _, _, _, _, Stop} = Work, Number, Done, Until) when Done band (?STRIDE - 1) =:= 0 ->
    case Done > 0 andalso atomics:get(Stop, 1) =:= 1 of
        true -> Done;
        false -> count_one(Work, Number, Done, Until)
    end;
count_up(Work, Number, Done, Until) ->
    count_one(Work, Number, Done, Until).

count_one({Table, _, _, Period, Least, Most, _} = Work, Number, Done, 1) ->
    Size = ets:info(Table, size),
    true = Size >= Least andalso Size =< Most,
    count_up(Work, Number, Done + 1, Period);
count_one({Table, First, Rows, _, _, _, _} = Work, Number, Done, Until) ->
    Key = First + Number rem Rows,
    case Number div Rows rem 2 of
        0 -> ets:insert(Table, {Key});
        1 -> ets:delete(Table, Key)
    end,
    count_up(Work, Number + 1, Done + 1, Until - 1).

%% The same as ordered_mix, with two forms of rows, and a select in place of every Period-th
%% operation of a worker.
ets_throughput(Options, Rows, Range, Step, Threads, Sequence, Selected, Period, Warm, Counted) ->
    Prefill = read("prefill"),
    Streams = read("streams"),
    Length = byte_size(Streams) div Threads,
    Row = row(Rows),
    with_table(Options, fun(Table) ->
        prefill_rows(Prefill, Table, Row),
        Run = fun(Milliseconds, Offset) ->
            together(Threads, Milliseconds, fun(Index, Stop) ->
                Stream = binary:part(Streams, Index * Length, Length),
                First = max(1, Period div Threads * (Index + 1)),
                Work = {Table, Row, Range, Sequence, {Selected, Period}, Stop},
                ets_passes(Stream, Work, Step, Offset, First, 0)
            end)
        end,
        Run(Warm, Range div 2),
        {Nanoseconds, Operations} = Run(Counted, 0),
        check_rows(Table, Row),
        {Nanoseconds, Operations, 0}
    end).

%% The fields of a row after its key, and the pattern for them.
row("int") -> {};
row("int_binary64") -> {binary:copy(<<0>>, ?BINARY_BYTES)}.

new_row(Key, {}) -> {Key};
new_row(Key, {Binary}) -> {Key, Binary}.

pattern({}) -> {'$1'};
pattern({_}) -> {'$1', '_'}.

prefill_rows(<<Key:32/little, Rest/binary>>, Table, Row) ->
    ets:insert(Table, new_row(Key, Row)),
    prefill_rows(Rest, Table, Row);
prefill_rows(<<>>, _Table, _Row) -> ok.

ets_passes(Stream, {_, _, Range, _, _, _} = Work, Step, Offset, Until, Done) ->
    case ets_operate(Stream, ?STRIDE, Until, Done, Offset, Work) of
        {stopped, Operations} ->
            Operations;
        {passed, Left, Operations} ->
            ets_passes(Stream, Work, Step, rotate(Offset + Step, Range), Left, Operations)
    end.

ets_operate(<<Word:32/little, Rest/binary>>, Left, Until, Done, Offset,
            {Table, Row, Range, Sequence, {Selected, Period}, _Stop} = Work)
  when Left > 0 ->
    Key = rotate((Word bsr 2) + Offset, Range),
    case Until of
        1 ->
            select(Selected, Table, Row, Key),
            ets_operate(Rest, Left - 1, Period, Done + 1, Offset, Work);
        _ ->
            case Word band 3 of
                ?LOOKUP -> ets:lookup(Table, Key);
                ?INSERT -> ets:insert(Table, new_row(Key, Row));
                ?REMOVE -> ets:delete(Table, Key);
                ?SEQUENCE -> sequence(Sequence, Table, Key)
            end,
            ets_operate(Rest, Left - 1, Until - 1, Done + 1, Offset, Work)
    end;
ets_operate(Stream, _Left, Until, Done, Offset, {_, _, _, _, _, Stop} = Work) ->
    case {atomics:get(Stop, 1), Stream} of
        {1, _} -> {stopped, Done};
        {0, <<>>} -> {passed, Until, Done};
        {0, _} -> ets_operate(Stream, ?STRIDE, Until, Done, Offset, Work)
    end.

select(all, Table, Row, _From) ->
    ets:select(Table, [{pattern(Row), [], ['$1']}]);
select(range, Table, Row, From) ->
    Guards = [{'>=', '$1', From}, {'<', '$1', From + ?SELECTED_KEYS}],
    ets:select(Table, [{pattern(Row), Guards, ['$1']}]);
select(none, _Table, _Row, _From) -> [].

%% Checks that the table has as many rows as it says, and that those of an ordered_set ascend.
check_rows(Table, Row) ->
    Keys = ets:select(Table, [{pattern(Row), [], ['$1']}]),
    Size = ets:info(Table, size),
    Size = case ets:info(Table, type) of
               ordered_set -> ascending(Keys, -1, 0);
               set -> length(Keys)
           end.

%% Runs one operation again and again, in rounds, in a process of its own. Rows that it needs are
%% inserted between rounds, off the clock.
ets_bench(Options, Operation, Rows, Warm, Counted) ->
    Keys = [Key || <<Key:32/little>> <= read("prefill")],
    <<>> = read("streams"),
    Driver = self(),
    with_table(Options, fun(Table) ->
        Bench = {Operation, Table, Keys, length(Keys), bench_row(Operation, row(Rows))},
        spawn_link(fun() ->
            rounds(Bench, Warm),
            Driver ! {rounds, rounds(Bench, Counted)}
        end),
        receive {rounds, {Nanoseconds, Operations}} -> {Nanoseconds, Operations, 0} end
    end).

%% The fields of a row after its key, including a counter if the operation needs one.
bench_row(update_counter, Row) -> erlang:append_element(Row, 0);
bench_row(update_element, Row) -> erlang:append_element(Row, 0);
bench_row(_, Row) -> Row.

rounds(Bench, Milliseconds) ->
    Span = erlang:convert_time_unit(Milliseconds, millisecond, native),
    rounds(Bench, element(3, Bench), Span, erlang:monotonic_time(), 0, 0).

%% Each round searches for some keys of the list `Next`, a different part each time.
rounds({Operation, Table, Keys, Count, Row} = Bench, Next, Span, Begun, Time, Done) ->
    prepare(Operation, Bench),
    {Some, Rest} = case Next of
                       _ when length(Next) >= ?SEARCHES -> lists:split(?SEARCHES, Next);
                       _ -> lists:split(?SEARCHES, Keys)
                   end,
    Start = erlang:monotonic_time(),
    Operations = round(Operation, Table, {Keys, Some, Count}, Row),
    End = erlang:monotonic_time(),
    After = case Operation of
                _ when Operation =:= delete; Operation =:= take;
                       Operation =:= delete_all_objects -> 0;
                _ -> Count
            end,
    After = ets:info(Table, size),
    Spent = Time + End - Start,
    case Spent >= Span orelse End - Begun >= ?PATIENCE * Span of
        true -> {nanoseconds(Spent), Done + Operations};
        false -> rounds(Bench, Rest, Span, Begun, Spent, Done + Operations)
    end.

prepare(insert_absent, Bench) -> ets:delete_all_objects(element(2, Bench));
prepare(insert_new, Bench) -> ets:delete_all_objects(element(2, Bench));
prepare(insert_list_100, Bench) -> ets:delete_all_objects(element(2, Bench));
prepare(Operation, {_, Table, Keys, Count, Row}) ->
    case ets:info(Table, size) of
        Count -> true;
        _ -> each(Keys, fun(Key) -> ets:insert(Table, bench_object(Operation, Key, Row)) end)
    end.

bench_object(match_prefix, Key, Row) -> object({Key div ?GROUP, Key rem ?GROUP}, Row);
bench_object(_, Key, Row) -> object(2 * Key, Row).

object(Key, {}) -> {Key};
object(Key, {A}) -> {Key, A};
object(Key, {A, B}) -> {Key, A, B}.

object_pattern(Key, {}) -> {Key};
object_pattern(Key, {_}) -> {Key, '_'};
object_pattern(Key, {_, _}) -> {Key, '_', '_'}.

each([Key | Rest], Work) ->
    true = Work(Key),
    each(Rest, Work);
each([], _Work) -> true.

%% Returns how many operations were done.
round(insert_absent, Table, Keys, Row) -> insert_each(Table, Keys, Row);
round(insert_present, Table, Keys, Row) -> insert_each(Table, Keys, Row);
round(insert_new, Table, {Keys, _, Count}, Row) ->
    each(Keys, fun(Key) -> ets:insert_new(Table, object(2 * Key, Row)) end),
    Count;
round(insert_list_100, Table, {Keys, _, Count}, Row) -> insert_lists(Table, Keys, Count, Row, 0);
round(lookup_hit, Table, {Keys, _, Count}, _Row) ->
    each(Keys, fun(Key) -> [_] = ets:lookup(Table, 2 * Key), true end),
    Count;
round(lookup_miss, Table, {Keys, _, Count}, _Row) ->
    each(Keys, fun(Key) -> [] = ets:lookup(Table, 2 * Key + 1), true end),
    Count;
round(member, Table, {Keys, _, Count}, _Row) ->
    each(Keys, fun(Key) -> ets:member(Table, 2 * Key) end),
    Count;
round(lookup_element, Table, {Keys, _, Count}, Row) ->
    Last = tuple_size(Row) + 1,
    each(Keys, fun(Key) -> ets:lookup_element(Table, 2 * Key, Last), true end),
    Count;
round(update_counter, Table, {Keys, _, Count}, Row) ->
    Update = {tuple_size(Row) + 1, 1},
    each(Keys, fun(Key) -> ets:update_counter(Table, 2 * Key, Update) > 0 end),
    Count;
round(update_element, Table, {Keys, _, Count}, Row) ->
    Last = tuple_size(Row) + 1,
    each(Keys, fun(Key) -> ets:update_element(Table, 2 * Key, {Last, Key}) end),
    Count;
round(delete, Table, {Keys, _, Count}, _Row) ->
    each(Keys, fun(Key) -> ets:delete(Table, 2 * Key) end),
    Count;
round(take, Table, {Keys, _, Count}, _Row) ->
    each(Keys, fun(Key) -> [_] = ets:take(Table, 2 * Key), true end),
    Count;
round(next, Table, {_, _, Count}, _Row) ->
    Count = forth(Table, ets:first(Table), 0);
round(prev, Table, {_, _, Count}, _Row) ->
    Count = back(Table, ets:last(Table), 0);
round(select_1, Table, Keys, Row) -> select_each(Table, Keys, Row, 1);
round(select_100, Table, Keys, Row) -> select_each(Table, Keys, Row, 100);
round(select_1000, Table, Keys, Row) -> select_each(Table, Keys, Row, 1000);
round(select_nothing, Table, {_, _, Count}, Row) ->
    [] = ets:select(Table, [{object_pattern('$1', Row), [{'/=', '$1', '$1'}], ['$1']}]),
    Count;
round(match_prefix, Table, {_, Some, Count}, Row) ->
    each(Some, fun(Key) ->
        Group = Key div ?GROUP,
        Found = ets:match(Table, object_pattern({Group, '$1'}, Row)),
        length(Found) =:= min(?GROUP, Count - Group * ?GROUP)
    end),
    ?SEARCHES;
round(match_object, Table, {_, Some, _}, Row) ->
    each(Some, fun(Key) -> [_] = ets:match_object(Table, object_pattern(2 * Key, Row)), true end),
    ?SEARCHES;
round(foldl, Table, {_, _, Count}, Row) ->
    Size = tuple_size(Row) + 1,
    Count = ets:foldl(fun(Object, Rows) when tuple_size(Object) =:= Size -> Rows + 1 end, 0, Table);
round(tab2list, Table, {_, _, Count}, _Row) ->
    Count = length(ets:tab2list(Table));
round(delete_all_objects, Table, {_, _, Count}, _Row) ->
    true = ets:delete_all_objects(Table),
    Count.

insert_each(Table, {Keys, _, Count}, Row) ->
    each(Keys, fun(Key) -> ets:insert(Table, object(2 * Key, Row)) end),
    Count.

insert_lists(_Table, [], _Count, _Row, Lists) -> Lists;
insert_lists(Table, Keys, Count, Row, Lists) ->
    {Some, Rest} = lists:split(min(?LIST_LENGTH, Count), Keys),
    true = ets:insert(Table, [object(2 * Key, Row) || Key <- Some]),
    insert_lists(Table, Rest, Count - ?LIST_LENGTH, Row, Lists + 1).

select_each(Table, {_, Some, Count}, Row, Rows) ->
    each(Some, fun(Key) ->
        From = 2 * min(Key, Count - Rows),
        Guards = [{'>=', '$1', From}, {'<', '$1', From + 2 * Rows}],
        Found = ets:select(Table, [{object_pattern('$1', Row), Guards, ['$1']}]),
        length(Found) =:= Rows
    end),
    ?SEARCHES.

forth(_Table, '$end_of_table', Steps) -> Steps;
forth(Table, Key, Steps) -> forth(Table, ets:next(Table, Key), Steps + 1).

back(_Table, '$end_of_table', Steps) -> Steps;
back(Table, Key, Steps) -> back(Table, ets:prev(Table, Key), Steps + 1).

%%% Measuring

%% Starts the workers together; raises the stop flag after Milliseconds. Returns the time
%% from the first start to the last end, and the sum of what the workers returned.
together(Threads, Milliseconds, Work) ->
    {Begun, Ended, Sum} = run(Threads, Milliseconds, Work),
    {nanoseconds(Ended - Begun), Sum}.

%% The same, with the times of the first start and the last end.
run(Threads, Milliseconds, Work) ->
    Driver = self(),
    Stop = atomics:new(1, []),
    Workers = [spawn_link(fun() -> worker(Driver, Index, Stop, Work) end)
               || Index <- lists:seq(0, Threads - 1)],
    [receive {ready, Worker} -> ok end || Worker <- Workers],
    [Worker ! go || Worker <- Workers],
    case Milliseconds of
        infinity -> ok;
        _ -> timer:sleep(Milliseconds)
    end,
    atomics:put(Stop, 1, 1),
    Done = [receive {done, Worker, Start, End, Result} -> {Start, End, Result} end
            || Worker <- Workers],
    {Starts, Ends, Results} = lists:unzip3(Done),
    {lists:min(Starts), lists:max(Ends), lists:sum(Results)}.

nanoseconds(Time) -> erlang:convert_time_unit(Time, native, nanosecond).

worker(Driver, Index, Stop, Work) ->
    Driver ! {ready, self()},
    receive go -> ok end,
    Start = erlang:monotonic_time(),
    Result = Work(Index, Stop),
    End = erlang:monotonic_time(),
    Driver ! {done, self(), Start, End, Result}.

%% Checks that the table has as many objects as it says, as many as expected, in ascending order.
check(Table, Expected) ->
    Keys = ets:select(Table, [{{'$1'}, [], ['$1']}]),
    Expected = ascending(Keys, -1, 0),
    Expected = ets:info(Table, size).

ascending([Key | Rest], Last, Count) when Key > Last -> ascending(Rest, Key, Count + 1);
ascending([], _Last, Count) -> Count.

bytes(Table) ->
    ets:info(Table, memory) * erlang:system_info(wordsize).

%% Reads a file and removes it, so that nothing is left behind if a process is killed.
read(Name) ->
    {ok, Bytes} = file:read_file(Name),
    ok = file:delete(Name),
    Bytes.
