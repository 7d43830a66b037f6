-module(clock).
-record(state, {time :: integer()}).
-define(ZERO, 0).
-type hour() :: 0..23.
-callback tick(hour()) -> ok.

%% Starts a clock.
start(At) ->
    start(At, []).

start(At, Opts) when is_list(Opts) ->
    #state{time = At};
start(At, _) ->
    At.

'odd name'() -> ok.
