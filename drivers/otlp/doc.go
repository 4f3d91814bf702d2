// Package otlp tells an OpenTelemetry collector what the engine did, as spans:
//
//	task KIND                  a task's life, from its dispatch to its end
//	├ queue                    a wait for a worker, before each attempt
//	├ decide GATE              a word of the judge (no duration)
//	├ approval                 from the question to its answer or its end
//	└ run KIND                 an attempt
//	  ├ invoke_agent NAME      an agent's turn
//	  │ ├ chat MODEL           a request to a model, where the runtime shows them
//	  │ └ execute_tool TOOL    a tool call
//	  ├ skill NAME             a skill's run; the steps of a composite below it
//	  └ task KIND              what the work dispatched
//
// The trace is the task's own trace_id. A span's id follows from what it is
// about (core.SpanID), so that a program gets its parent in TRACEPARENT, an
// MCP server in _meta, an ACP agent in _meta and an exec agent in its task line,
// and what they trace joins in.
//
// Nothing in the engine knows of this package. It reads the audit log behind
// the engine: the log is the queue, so that the engine never waits and nothing
// is held in memory but one batch. When a collector can't be reached the batch
// is tried again; who falls behind by more than MaxBehind events skips them
// and counts them. Spans are told when they end: what ended while no engine
// with a collector ran is not told.
//
// No span has a prompt, an input, an argument, an output, a reason or a title:
// names, kinds, codes, counts and times only. Where Settings.Content asks for it,
// requests to models and tool calls have what the record has of them.
package otlp
