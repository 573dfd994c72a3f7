:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_host', [rules_forget/2, rules_load/2]).

:- begin_tests(rlm_host_check).

%   row(?Text, ?Rules, ?Findings): what is told of a file of one line: how many rules it has, or `none` where it is refused,
%   and `f(Column, Level, Message, Fix)` for each finding.
row("veto(tool(x), no).",
    none, [f(1, error, 'veto/2 where veto/3 is asked', 'write veto(_,_,_)')]).
row("boost(tool(x), _, up).",
    none, [f(1, error, 'boost/3 where boost/4 is asked', 'write boost(_,_,_,_)')]).
row("requires(tool(x), _).",
    none, [f(1, error, 'requires/2 where requires/3 is asked', 'write requires(_,_,_)')]).
row("X.",
    none, [f(1, error, 'a variable is no clause', '')]).
row("42.",
    none, [f(1, error, '42 is no clause', 'begin with a predicate')]).
row("\"veto\".",
    none, [f(1, error, '"veto" is no clause', 'begin with a predicate')]).
row("X :- true.",
    none, [f(1, error, 'a variable is no head', 'name the predicate')]).
row("42 :- true.",
    none, [f(1, error, '42 is no clause', 'begin with a predicate')]).
row("m:veto(_, _, _).",
    none, [f(1, error, 'a clause for another module', 'leave the module out')]).
row("m:h(a) :- true.",
    none, [f(1, error, 'a clause for another module', 'leave the module out')]).
row(":- encoding(utf8).",
    none, [f(1, error, 'a directive', 'remove it: a policy is always read as UTF-8')]).
row(":- op(700, xfx, ===>).",
    none, [f(1, error, 'a directive: operators cannot be declared', 'write the term without the operator')]).
row(":- shell(ls).",
    none, [f(1, error, 'a directive: nothing runs while a policy is loaded', 'remove it: a policy holds clauses only')]).
row(":- X.",
    none, [f(1, error, 'a directive: nothing runs while a policy is loaded', 'remove it: a policy holds clauses only')]).
row("?- a.",
    none, [f(1, error, 'a query', 'remove it: a policy holds clauses only')]).
row("a --> b.",
    none, [f(1, error, 'a grammar rule', 'write an ordinary clause')]).
row("a => b.",
    none, [f(1, error, 'a rule with =>', 'write an ordinary clause with :-')]).
row("veto(tool(x), _, no) :- _{a: 1} = _.",
    none, [f(25, error, 'a dict', 'write a list or an ordinary term')]).
row("veto(tool(x), T, no) :- X = T.a, X == b.",
    none, [f(29, error, 'a dict call', 'end a clause with a full stop and a blank')]).
row("veto(tool(x), _, no) :- a() = _.",
    none, [f(25, error, 'a term without arguments', 'leave the brackets out')]).
row("veto(tool(x), _, no) :- member('$x', [_]).",
    1, []).
row("veto(tool(x), _, no) :- member('$x'(a), [_]).",
    none, [f(32, error, '\'$x\': names with a dollar are the system\'s', 'choose another name')]).
row("append(_, _, _).",
    none, [f(1, error, 'append/3 is given to every policy and cannot be redefined', 'choose another name')]).
row("print_message(_, _).",
    none, [f(1, error, 'print_message/2 is the system\'s and cannot be redefined', 'choose another name')]).
row("once(_).",
    none, [f(1, error, 'once/1 is the system\'s and cannot be redefined', 'choose another name')]).
row("term_expansion(_, _).",
    none, [f(1, error, 'term_expansion/2 is the system\'s and cannot be redefined', 'choose another name')]).
row("{}(_).",
    none, [f(1, error, '{}/1 is the system\'s and cannot be redefined', 'choose another name')]).
row("veto(tool(x), _, no) :- X = a, X.",
    none, [f(32, error, 'a variable is no goal', 'write the goal itself')]).
row("veto(tool(x), _, no) :- !.",
    none, [f(25, error, 'a cut in a rule: every rule stands alone', 'cut in a helper, or use ( -> ; )')]).
row("veto(tool(x), _, no) :- lists:append([], [], _).",
    none, [f(25, error, 'a goal in another module', 'leave the module out')]).
row("veto(tool(x), _, no) :- 42.",
    none, [f(25, error, '42 is no goal', '')]).
row("veto(tool(x), T, no) :- veto(tool(y), T, _).",
    none, [f(25, error, 'veto/3 is asked by the compiler, never by a rule', 'put the condition into a helper and use it in both')]).
row("veto(tool(x), _, no) :- shell(ls).",
    none, [f(25, error, 'a rule may not call shell/1', fix(decide))]).
row("veto(tool(x), _, no) :- nothing(1).",
    none, [f(25, error, 'there is no nothing/1', 'define it in this file')]).
row("veto(tool(x), _, no) :- helpr(1). helper(1).",
    none, [f(25, error, 'there is no helpr/1', 'did you mean helper/1?'),
     f(35, warning, 'helper/1 is never used', 'use it or remove it')]).
row("veto(tool(x), _, no) :- helper(1). helper(1, 2).",
    none, [f(25, error, 'there is no helper/1', 'did you mean helper/2?'),
     f(36, warning, 'helper/2 is never used', 'use it or remove it')]).
row("veto(tool(x), _, no) :- X is foo(1), X > 2.",
    none, [f(30, error, 'foo(1) is no arithmetic of a rule', fix(numbers))]).
row("veto(tool(x), _, no) :- 1 < a.",
    none, [f(29, error, 'a is no arithmetic of a rule', fix(numbers))]).
row("veto(tool(x), _, no) :- b > 1.",
    none, [f(25, error, 'b is no arithmetic of a rule', fix(numbers))]).
row("veto(tool(x), turn, no).",
    none, [f(15, error, 'a turn is seen through its facts only', 'write a variable')]).
row("veto(foo, _, no).",
    none, [f(6, error, 'foo is no unit', fix(kinds))]).
row("veto(f(x), _, no).",
    none, [f(6, error, 'f(x) is no unit', fix(kinds))]).
row("veto('tool:a', _, no).",
    none, [f(6, error, '\'tool:a\' is no unit', 'did you mean tool(a)?')]).
row("veto(tool(\"x\"), _, no).",
    none, [f(6, error, 'tool("x") is no unit', 'did you mean tool(x)?')]).
row("veto(tool('a/b'), _, no).",
    none, [f(6, error, 'tool(\'a/b\') is no unit', 'did you mean tool(a,b)?')]).
row("veto(tool(f(x)), _, no). ",
    none, [f(6, error, 'tool(f(x)) is no unit', fix(kinds))]).
row("veto(7, _, no).",
    none, [f(6, error, '7 is no unit', fix(kinds))]).
row("veto(U, _, no) :- server(U, \"github\").",
    none, [f(29, error, '"github" where an atom stands', 'write github')]).
row("veto(U, _, no) :- server(U, 7).",
    none, [f(29, error, '7 where an atom stands', 'write an atom')]).
row("veto(U, _, no) :- kind(U, tol).",
    none, [f(27, error, 'there is no kind tol', 'did you mean tool?')]).
row("veto(U, _, no) :- kind(U, f(x)).",
    none, [f(27, error, 'there is no kind f(x)', 'one of: instruction, skill, tool, mcp_server, mcp_tool, mcp_prompt, resource')]).
row("veto(U, _, no) :- kind(U, zzz).",
    none, [f(27, error, 'there is no kind zzz', 'one of: instruction, skill, tool, mcp_server, mcp_tool, mcp_prompt, resource')]).
row("veto(U, T, no) :- mode(T, secret), U = tool(x).",
    none, [f(27, error, 'there is no mode secret', 'one of: compiled, all_tools')]).
row("veto(U, T, no) :- trust(T, U, hots).",
    none, [f(31, error, 'there is no trust hots', 'did you mean host?')]).
row("veto(U, T, no) :- trust(T, U, me).",
    none, [f(31, error, 'there is no trust me', 'one of: host, stranger')]).
row("veto(tool(x), _, f(x)).",
    none, [f(18, error, 'f(x) is no reason', 'say why in an atom or a string')]).
row("veto(tool(x), _, 7).",
    none, [f(18, error, '7 is no reason', 'say why in an atom or a string')]).
row("boost(tool(x), _, 2001, up).",
    none, [f(19, error, '2001 is no boost', fix(boost))]).
row("boost(tool(x), _, -2001, up).",
    none, [f(19, error, '-2001 is no boost', fix(boost))]).
row("boost(tool(x), _, a, up).",
    none, [f(19, error, 'a is no boost', fix(boost))]).
row("requires(tool(x), _, foo).",
    none, [f(22, error, 'foo is no unit', fix(kinds))]).
row("veto(tool(x), _, \"a string\").",
    1, []).
row("boost(tool(x), _, 2000, up).",
    1, []).
row("boost(tool(x), _, -2000, up).",
    1, []).
row("veto(tool(x), _, no). h(a). h(b) :- h(a).",
    1, [f(23, warning, 'h/1 is never used', 'use it or remove it')]).
row("% soon",
    0, [f(1, warning, 'nothing here decides anything', 'write clauses of veto/3, boost/4 or requires/3')]).
row("veto(Unit, _, no) :- Unit = tool(x), a(Untit). a(_).",
    1, [f(40, warning, 'Untit occurs only once', 'if that is meant, write _Untit')]).
row("veto(tool(x), T, no) :- ( says(T, a) -> true ; \\+ says(T, b) ), once(says(T, c)), forall(says(T, d), says(T, e)), findall(X, member(X, [a]), L), L == [].",
    1, []).
row("veto(tool(x), T, no) :- ( says(T, a) -> true ; \\+ shell(b) ), once(shell(c)), forall(says(T, d), shell(e)), findall(X, shell(X), L), L == [].",
    none, [f(51, error, 'a rule may not call shell/1', fix(decide)),
     f(68, error, 'a rule may not call shell/1', fix(decide)),
     f(98, error, 'a rule may not call shell/1', fix(decide)),
     f(120, error, 'a rule may not call shell/1', fix(decide))]).

fix(decide, 'rules decide from the facts of a turn; they read, write and remember nothing').
fix(numbers, 'write numbers, variables, and: + - * / // mod rem div min max abs sign round truncate floor ceiling').
fix(kinds, 'write Kind(Name) or Kind(Server, Name) with atoms; kinds: instruction, skill, tool, mcp_server, mcp_tool, mcp_prompt, resource').
fix(boost, 'a boost is a whole number of thousandths from -2000 to 2000').

told(Text, Count, Findings) :-
    atom_string(Source, Text),
    rules_load(_{source: Source, name: 'policy.pl'}, Reply),
    (   get_dict(rules, Reply, Handle)
    ->  rules_forget(_{rules: Handle}, _),
        Count = Reply.rules_count
    ;   Count = none
    ),
    findall(f(Column, Level, Message, Fix),
            ( member(Finding, Reply.findings),
              Finding >:< _{line: 1, column: Column, level: Level, message: Message, fix: Fix0},
              ( fix(Name, Fix0) -> Fix = fix(Name) ; Fix = Fix0 ) ),
            Findings).

test(rule_what_is_told_of_a_file, [forall(row(Text, Count, Findings)), Told == Count-Findings]) :-
    told(Text, Count0, Findings0),
    Told = Count0-Findings0.

:- end_tests(rlm_host_check).
