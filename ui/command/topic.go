package command

// topics are texts of help that belong to no one command.
func topics() map[string]string {
	return map[string]string{"skill-file": skillFileHelp}
}

const skillFileHelp = `A skill file is YAML or JSON: one skill, strictly read. Load it with: skill load PATH…

  name: navigate                  required; 3-50 letters, digits, hyphens
  version: 1.0.0                  required; X.Y.Z. Versions live side by side, the newest is the default
  description: Drive to a place   at most 500 characters
  parameters_schema:              required; JSON Schema 2020-12 of an object. Defaults are filled in
    type: object
    properties:
      location: {type: string}
      speed: {type: number, default: 1.0}
    required: [location]
  returns_schema: {type: object}  JSON Schema 2020-12; every result is checked against it
  timeout: 30                     seconds of one try, 1-3600, default 30
  max_retries: 0                  0-5, default 0
  dependencies: [localize]        skills that run first: name or name@X.Y.Z
  tags: [navigation]              at most 10 of at most 30 characters
  effects: [exec, write]          of read, write, network, exec: shown and judged before a run
  topic: navigation               its end is announced as navigation.complete or navigation.failed;
                                  default the first tag, else the name
  runner:                         required; what carries it out, one of
    {kind: exec, argv: [./navigate.sh], dir: ., env: {MAP: "${DIR}/map"}}
                                  gets one JSON document on stdin, prints one JSON object on stdout;
                                  dir is the file's unless it says otherwise, ${DIR} stands for that
    {kind: builtin, name: echo}
    {kind: agent, agent: helper, prompt: "Go to ${location}"}
    {kind: mcp, server: tracker, tool: create_issue}
                                  calls a tool of a server that was added: mcp add
    {kind: cad, method: solid.extrude}
                                  a CAD operation, by the agent that the parameter agent_id names
    {kind: composite, steps: […]}
                                  each step: id, skill, params, error_policy: retry|abort|fallback,
                                  fallback: SKILL, backoff_multiplier: 1-10 (default 2). Texts in params may hold
                                  ${params.field} and ${earlier-step.field}; a literal ${ is written $${

A file that is not valid is refused whole with every mistake, and what was loaded of it before stays.
`
