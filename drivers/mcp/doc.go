// Package mcp speaks the Model Context Protocol both ways. Its Server offers
// the fleet, tasks, approvals (to look at), messages and skills of a tenant as
// tools, and the judge's policy as resources, over stdio and streamable HTTP.
// Its Client calls the tools of configured servers, as tasks of kind mcp.call
// and as skills with the runner mcp.
//
// A call of a tool passes one place: its arguments are checked and filled in
// with their defaults, put before the judge in the name of an operator or of
// an agent, and only then carried out. Nobody approves anything here.
package mcp
