package exec

import (
	"fmt"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// maxFormer is how many lines of output Former gives, the last ones.
const maxFormer = 900

// Former tells in lines of a log how a run ended whose engine had died, and what
// of its output that engine had not read. Their source names the very run: no two
// runs have the same.
func Former(k cell.Kept) []task.LogLine {
	var said []task.LogLine
	add := func(level, text string) { said = append(said, task.LogLine{Level: level, Message: text}) }
	split := func(data []byte, each func(line []byte, cut int)) {
		lines := pipe.Splitter{Max: maxLogLine, Emit: each}
		_, _ = lines.Write(data)
		lines.Close()
	}
	split(k.Stdout, func(line []byte, cut int) {
		e, err := parse(line)
		if k.Whose.Task == "" && cut == 0 && err == nil && (e.Type == "log" || e.Type == "message") {
			add(e.Level, core.ClipTo(e.Text, maxLogLine))
			return
		}
		add("INFO", pipe.Marked(line, cut))
	})
	split(k.Stderr, func(line []byte, cut int) { add("WARN", pipe.Marked(line, cut)) })
	over := max(0, len(said)-maxFormer)
	head := "the engine died at " + k.Lost.UTC().Format(time.RFC3339) + " while this ran"
	switch {
	case over > 0 || k.Cut:
		head += fmt.Sprintf("; the last %d lines that it had not read:", len(said)-over)
	case len(said) > 0:
		head += fmt.Sprintf("; the %d lines that it had not read:", len(said))
	default:
		head += ", and had read all that it wrote"
	}
	lines := append([]task.LogLine{{Level: "WARN", Message: head}}, said[over:]...)
	lines = append(lines, task.LogLine{Level: "WARN", Message: "of the former engine's run: it " + k.Outcome()})
	for i := range lines {
		lines[i].Source = "former engine, run " + k.Name
	}
	return lines
}
