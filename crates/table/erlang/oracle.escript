#!/usr/bin/env escript
%% -*- erlang -*-
%%
%% What a real Erlang says: the oracle of the tests `erlang` and `erlang_*`.
%%
%% Messages in both directions are a length in four bytes, the greatest first, and a term in the
%% external format: {Kind, Questions} there, the list of answers back, until the input ends.
%%
%% Kind `terms`: {A, B, Text} are two terms in the external format, and how A was printed (`none` if
%% Erlang cannot read it). The answer is {Order, Identical, MapOrder, Printed, Read, Written}:
%%
%% Order         how A compares with B: lt, eq or gt
%% Identical     A =:= B
%% MapOrder      how A and B compare as keys of maps
%% Printed       A, by io_lib:format("~0p")
%% Read          whether Text reads as A: true, or what it reads as
%% Written       [A, in the external format as this version writes it by default,
%%                as newer ones do, compressed]
%%
%% Kind `match_specs`: {Spec, Rows} is a match specification, and rows to run it against. The
%% answer is `badarg` if it does not compile, else for each row [] or [Result].
%%
%% Kind `tables`: {Slot, Function, Arguments} is a call of ets:Function with the table in that slot
%% and the arguments, or of one of the functions below. The answer is {ok, Result} or `badarg`.
%%
%% Kind `ets`: {Function, Arguments} is a call of ets:Function with tables by their names, or of one of
%% the functions below. The answer is {ok, Result}, or `badarg` for any exception.
%%
%% Kind `files`: {Path, Options, Rows, Extended} is a table that is to be written to a file.
%%
%% Kind `self`: the answer is the process that runs match specifications.

-module(oracle).
-mode(compile).
-export([main/1]).

main(_) ->
    ok = io:setopts(standard_io, [binary, {encoding, latin1}]),
    loop().

loop() ->
    case file:read(standard_io, 4) of
        {ok, <<Length:32>>} ->
            {ok, Message} = file:read(standard_io, Length),
            {Kind, Questions} = binary_to_term(Message),
            Reply = term_to_binary([answer(Kind, Question) || Question <- Questions]),
            ok = file:write(standard_io, [<<(byte_size(Reply)):32>>, Reply]),
            loop();
        eof ->
            ok
    end.

answer(terms, {EncodedA, EncodedB, Text}) ->
    A = binary_to_term(EncodedA),
    B = binary_to_term(EncodedB),
    {order(A, B),
     A =:= B,
     order(#{A => 1}, #{B => 1}),
     unicode:characters_to_binary(io_lib:format("~0p", [A])),
     read(Text, A),
     [term_to_binary(A),
      term_to_binary(A, [{minor_version, 2}]),
      term_to_binary(A, [{compressed, 9}])]};
answer(match_specs, {Spec, Rows}) ->
    try ets:match_spec_compile(Spec) of
        Compiled -> [ets:match_spec_run([Row], Compiled) || Row <- Rows]
    catch
        error:badarg -> badarg
    end;
answer(self, _) ->
    self();
answer(tables, {Slot, Function, Arguments}) ->
    try
        {ok, table(Slot, Function, Arguments)}
    catch
        error:badarg -> badarg
    end;
answer(ets, {Function, Arguments}) ->
    try
        {ok, ets(Function, Arguments)}
    catch
        error:_ -> badarg
    end;
answer(files, {Path, Options, Rows, Extended}) ->
    Table = ets:new(from_erlang, Options),
    true = ets:insert(Table, Rows),
    ok = ets:tab2file(Table, binary_to_list(Path), [{extended_info, Extended}]),
    true = ets:delete(Table).

ets(match_spec_run, [Terms, Spec]) ->
    ets:match_spec_run(Terms, ets:match_spec_compile(Spec));
%% The texts of errors differ.
ets(test_ms, [Term, Spec]) ->
    case ets:test_ms(Term, Spec) of
        {error, Errors} when is_list(Errors) -> error;
        Tested -> Tested
    end;
%% Only whether more may follow.
ets(chunk, [Table, Pattern, Limit]) ->
    case ets:match(Table, Pattern, Limit) of
        {Found, Continuation} when is_tuple(Continuation) -> {Found, more};
        Found -> Found
    end;
%% What binaries there are, but for their addresses.
ets(binary_sizes, [Table]) ->
    lists:sort([Bytes || {_, Bytes, _} <- ets:info(Table, binary)]);
ets(has_stats, [Table]) ->
    is_tuple(ets:info(Table, stats));
ets(tab2file, [Table, Path]) ->
    ets:tab2file(Table, binary_to_list(Path));
ets(file2tab, [Path]) ->
    ets:file2tab(binary_to_list(Path));
ets(Function, Arguments) ->
    apply(ets, Function, Arguments).

%% Compressing shows in nothing but memory, and long runs on compressed tables end in a crash of
%% Erlang 25: the oracle's tables are not compressed.
table(Slot, new, [Options]) ->
    erase({continuation, Slot}),
    New = ets:new(t, [public | Options -- [compressed]]),
    case put({table, Slot}, New) of
        undefined -> true;
        Old -> ets:delete(Old)
    end;
table(Slot, Function, Arguments) ->
    call(get({table, Slot}), Slot, Function, Arguments).

%% All keys, by first and next.
call(Table, _, keys, []) ->
    lists:sort(keys(Table, ets:first(Table)));
%% The same, each deleted before the next is asked for.
call(Table, _, drain, []) ->
    true = ets:safe_fixtable(Table, true),
    Keys = drain(Table, ets:first(Table)),
    true = ets:safe_fixtable(Table, false),
    lists:sort(Keys);
%% All chunks.
call(Table, _, chunks, [Function, Pattern, Limit]) ->
    chunks(Function, ets:Function(Table, Pattern, Limit));
%% One chunk, and where to go on is kept.
call(Table, Slot, chunk, [Function, Pattern, Limit]) ->
    chunk(Slot, Function, ets:Function(Table, Pattern, Limit));
call(_, Slot, next_chunk, []) ->
    case get({continuation, Slot}) of
        {Function, Continuation} -> chunk(Slot, Function, ets:Function(Continuation));
        _ -> '$end_of_table'
    end;
call(Table, _, foldl, []) ->
    ets:foldl(fun(Row, Rows) -> [Row | Rows] end, [], Table);
call(Table, _, foldr, []) ->
    ets:foldr(fun(Row, Rows) -> [Row | Rows] end, [], Table);
call(Table, _, init_table, [Rows]) ->
    ets:init_table(Table, fun(read) -> {Rows, fun(read) -> end_of_input end} end);
call(Table, _, Function, Arguments) ->
    apply(ets, Function, [Table | Arguments]).

keys(_, '$end_of_table') -> [];
keys(Table, Key) -> [Key | keys(Table, ets:next(Table, Key))].

drain(_, '$end_of_table') ->
    [];
drain(Table, Key) ->
    true = ets:delete(Table, Key),
    [Key | drain(Table, ets:next(Table, Key))].

chunks(_, '$end_of_table') -> ['$end_of_table'];
chunks(_, {Found, '$end_of_table'}) -> [Found];
chunks(Function, {Found, Continuation}) -> [Found | chunks(Function, ets:Function(Continuation))].

chunk(Slot, _, '$end_of_table') ->
    erase({continuation, Slot}),
    '$end_of_table';
chunk(Slot, _, {Found, '$end_of_table'}) ->
    erase({continuation, Slot}),
    {Found, '$end_of_table'};
chunk(Slot, Function, {Found, Continuation}) ->
    put({continuation, Slot}, {Function, Continuation}),
    {Found, more}.

order(A, B) when A < B -> lt;
order(A, B) when A > B -> gt;
order(A, B) when A == B -> eq.

read(none, _) -> true;
read(Text, A) ->
    case erl_scan:string(unicode:characters_to_list(<<Text/binary, ".">>)) of
        {ok, Tokens, _} ->
            case erl_parse:parse_term(Tokens) of
                {ok, A} -> true;
                Other -> said(Other)
            end;
        Other ->
            said(Other)
    end.

said(Term) -> unicode:characters_to_binary(io_lib:format("~0tp", [Term])).
