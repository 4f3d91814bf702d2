// Package formats lists what records of agents are exported to and imported
// from.
package formats

import (
	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/dag/car"
	"swarmdeck/drivers/dag/genai"
	"swarmdeck/drivers/dag/git"
	"swarmdeck/drivers/dag/jsonl"
	"swarmdeck/drivers/dag/sqlite"
	command "swarmdeck/drivers/git"
	"swarmdeck/engine/dag"
)

// All are the formats by name; git is started as a cell.
func All(cells *cell.Supervisor) map[string]dag.Format {
	return map[string]dag.Format{"jsonl": jsonl.Format{}, "sqlite": sqlite.Format{}, "car": car.Format{}, "git": git.Format{Git: command.Git{Cells: cells}}}
}

// Sources are what is imported beside records, by name.
func Sources() map[string]dag.Source {
	return map[string]dag.Source{"events": jsonl.Events{}, "otlp": genai.Source{}}
}
