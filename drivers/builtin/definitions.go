package builtin

import (
	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
)

// version of all definitions; it changes with the parameters or results of any.
const version = "1.0.0"

// Definitions are the skills by which the builtins can be used without a
// file. The caller may change what it gets.
func Definitions() []skill.Skill {
	return []skill.Skill{
		define("echo", 30, "Gives its parameters back.",
			`{"type":"object"}`,
			`{"type":"object"}`),
		define("sleep", 3600, "Waits. Time in which it is paused does not count.",
			`{"type":"object","properties":{
				"seconds":{"type":"number","minimum":0,"maximum":3600}
			},"required":["seconds"],"additionalProperties":false}`,
			`{"type":"object","properties":{"seconds":{"type":"number"}},"required":["seconds"]}`),
		define("http-get", 60, "Reads a web address, with at most 5 redirects, all within its host and none from https to http. Any status is a result. A body that is no text comes in base64.",
			`{"type":"object","properties":{
				"url":{"type":"string","minLength":1,"maxLength":8192},
				"headers":{"type":"object","maxProperties":50,"additionalProperties":{"type":"string"}},
				"max_bytes":{"type":"integer","minimum":1,"maximum":1048576,"default":262144}
			},"required":["url"],"additionalProperties":false}`,
			`{"type":"object","properties":{
				"status":{"type":"integer"},
				"url":{"type":"string"},
				"headers":{"type":"object","additionalProperties":{"type":"string"}},
				"body":{"type":"string"},
				"body_base64":{"type":"string"}
			},"required":["status","url","headers"]}`,
			skill.Network),
		define("file-read", 30, "Reads a file within the directory that the engine works in. Symbolic links are not followed. A file that is no text comes in base64.",
			`{"type":"object","properties":{
				"path":{"type":"string","minLength":1,"maxLength":4096},
				"max_bytes":{"type":"integer","minimum":1,"maximum":1048576,"default":262144}
			},"required":["path"],"additionalProperties":false}`,
			`{"type":"object","properties":{
				"path":{"type":"string"},
				"bytes":{"type":"integer"},
				"content":{"type":"string"},
				"content_base64":{"type":"string"}
			},"required":["path","bytes"]}`,
			skill.Read),
		define("file-write", 30, "Writes a file within the directory that the engine works in: all of it or nothing, except when it appends. Symbolic links are not followed.",
			`{"type":"object","properties":{
				"path":{"type":"string","minLength":1,"maxLength":4096},
				"content":{"type":"string"},
				"mode":{"enum":["create","overwrite","append"],"default":"create"}
			},"required":["path","content"],"additionalProperties":false}`,
			`{"type":"object","properties":{
				"path":{"type":"string"},
				"bytes":{"type":"integer"},
				"created":{"type":"boolean"}
			},"required":["path","bytes","created"]}`,
			skill.Write),
		define("json-query", 30, "Asks a JSON value by a jq query, in a process of its own.",
			`{"type":"object","properties":{
				"query":{"type":"string","minLength":1,"maxLength":65536},
				"input":true
			},"required":["query","input"],"additionalProperties":false}`,
			`{"type":"object","properties":{"results":{"type":"array"}},"required":["results"]}`),
		define("wait-for-message", 3600, "Takes the next message of a topic (with * and > as on the bus) or of its agent's mailbox.",
			`{"type":"object","properties":{
				"topic":{"type":"string","minLength":1,"maxLength":200},
				"mailbox":{"const":true},
				"timeout":{"type":"number","exclusiveMinimum":0,"maximum":3600}
			},"oneOf":[{"required":["topic"]},{"required":["mailbox"]}],"additionalProperties":false}`,
			`{"type":"object"}`,
			skill.Read),
	}
}

func define(name string, timeout int, about, params, returns string, effects ...skill.Effect) skill.Skill {
	if effects == nil {
		effects = []skill.Effect{}
	}
	return skill.Skill{
		Name: name, Version: version, Description: about, ParametersSchema: compact(params), ReturnsSchema: compact(returns),
		Timeout: timeout, Dependencies: []string{}, Tags: []string{}, Effects: effects, Source: "builtin",
		Runner: skill.Spec{Kind: Kind, Name: name},
	}
}

// compact is a schema without the space it is written with here.
func compact(schema string) core.Raw {
	raw := core.Raw(schema)
	_ = raw.Compact() // a test reads them all
	return raw
}
