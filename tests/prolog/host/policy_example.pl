% An example of a host's own rules: what is read here is in the description of rlm_host.

% Nobody drops a table by accident.
veto(mcp_tool(postgres, drop_table), Turn, 'tables are dropped by hand') :-
    \+ signal(Turn, change, approved).

% Strangers' servers stay out of incidents.
veto(Unit, Turn, Why) :-
    need(Turn, incident),
    kind(Unit, mcp_tool),
    trust(Turn, Unit, stranger),
    server(Unit, Server),
    string_concat("no third parties in an incident: ", Server, Why).

% Who speaks of a release wants the release tools first.
boost(tool(Name), Turn, 500, 'a release') :-
    says(Turn, release),
    release_tool(Name).

% In production, deploying needs the checklist.
requires(tool(deploy), Turn, skill(checklist)) :-
    says(Turn, production).

release_tool(tag).
release_tool(changelog).
