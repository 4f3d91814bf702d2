package op

import (
	"context"
	"fmt"

	"swarmdeck/engine/dag"
)

func recordFormat(into *string) *Param {
	return place(into, "FORMAT", "enum:git,sqlite,car,jsonl").enum("git", "sqlite", "car", "jsonl")
}

func dagExport() *Op {
	var format, dest string
	return define(Op{
		Name: "dag export", Short: "Write the whole record to a file or directory that does not exist yet", Effect: Reads, Example: "dag export sqlite record.db",
		Long: "Write the whole record to a place that does not exist yet. All formats can be imported again:\n" +
			"git     a repository: a commit for each part of a run, a branch for each agent and fork\n" +
			"sqlite  a database: the tables events, edges and nodes, the views runs, calls and messages\n" +
			"car     IPLD: the digest in the CID of an event is its id\n" +
			"jsonl   an event a line",
		Params: []*Param{recordFormat(&format), place(&dest, "DEST", "").makes()},
	}, func(ctx context.Context, c *Call) (Told[dag.Transferred], error) {
		done, err := c.DAG.Export(ctx, c.By.Tenant, format, c.path(dest))
		return told(done, fmt.Sprintf("exported %d events to %s", done.Events, dest)), FileFault("write", "dest", dest, err)
	})
}

func dagImport() *Op {
	var format, src string
	return define(Op{
		Name: "dag import", Short: "Take in a record that was exported; what is here already stays", Done: "imported",
		Long: "Take in a record that was exported. All of it is looked at first: when an event was changed, added or\n" +
			"removed, nothing is taken in. Importing twice changes nothing.",
		Params: []*Param{recordFormat(&format), place(&src, "SRC", "file")},
	}, func(ctx context.Context, c *Call) (Told[dag.Transferred], error) {
		done, err := c.DAG.Import(ctx, c.By, format, c.path(src))
		if err = FileFault("read", "src", src, err); err != nil {
			return Told[dag.Transferred]{}, failed(err)
		}
		return told(done, fmt.Sprintf("imported %d events from %s, %d of them new", done.Events, src, done.New)), err
	})
}
