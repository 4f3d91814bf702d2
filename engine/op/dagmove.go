package op

import (
	"context"
	"fmt"
	"strings"

	"swarmdeck/engine/dag"
)

func recordFormat(into *string, more ...string) *Param {
	all := append([]string{"git", "sqlite", "car", "jsonl"}, more...)
	return place(into, "FORMAT", "enum:"+strings.Join(all, ",")).enum(all...)
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
		Name: "dag import", Short: "Take in a record that was exported, events or spans; what is here already stays", Done: "imported",
		Long: "Take in a record that was exported. All of it is looked at first: when an event was changed, added or\n" +
			"removed, nothing is taken in. Importing twice changes nothing. What other programs wrote can be taken in too, by\n" +
			"batches as with dag emit --stream, once all of it could be read:\n" +
			"events  an event with the model's fields a line\n" +
			"otlp    OpenTelemetry spans about generative AI, as OTLP/JSON: invoke_agent is a run, chat a request to a\n" +
			"        model with its answer, execute_tool a tool call with its result",
		Example: "dag import git record\ndag import otlp spans.json",
		Params:  []*Param{recordFormat(&format, "events", "otlp"), place(&src, "SRC", "file")},
	}, func(ctx context.Context, c *Call) (Told[dag.Transferred], error) {
		take := func() (dag.Transferred, error) { return c.DAG.Import(ctx, c.By, format, c.path(src)) }
		if format == "events" || format == "otlp" {
			take = func() (dag.Transferred, error) {
				return c.DAG.ImportEvents(ctx, c.By, format, c.path(src), c.counts())
			}
		}
		done, err := take()
		if err = FileFault("read", "src", src, err); err != nil {
			return Told[dag.Transferred]{}, failed(err)
		}
		return told(done, fmt.Sprintf("imported %d events from %s, %d of them new", done.Events, src, done.New)), err
	})
}
