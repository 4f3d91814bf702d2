// Package coder keeps agents in workspaces of a Coder deployment.
//
// An agent of this runtime is a workspace. Its project is a template with a
// display name and the parameters ai_prompt and system_prompt, its role one of
// that template's presets. The program that works in it is reached through
// the deployment's app proxy, where it serves agentapi; what differs between a
// plain workspace and one that belongs to a Task is behind the backend.
//
// What an agent is comes from streams: one for each workspace, one for each
// conversation, and one of the whole owner's that says when to look again. A slow read once a minute is all
// the polling there is. The deployment is never needed to list or show an
// agent, and one that does not answer makes its agents offline until it does.
//
// The token is read from the environment or a file whenever it is needed. It
// is in no argument, record or log, and leaves for no other host than the one
// that the options name.
//
// The client, codersdk, imports parts of Coder's server, and these much that
// only a server needs. The modules below unused declare what of that has to
// compile and define next to nothing, so that it is not in the program.
package coder
