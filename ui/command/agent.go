package command

import (
	"fmt"
	"strings"

	"swarmdeck/engine/face"
	"swarmdeck/engine/task"
)

// logText is a log line as it is followed; what an entry has more stands below it.
func logText(l task.LogLine, wide bool) string {
	text := strings.ReplaceAll(strings.TrimRight(l.Message, "\n"), "\n", "\n  ")
	if wide {
		return fmt.Sprintf("%s %-5s %s %s", face.Stamp(l.Timestamp), l.Level, l.Source, text)
	}
	return fmt.Sprintf("%s %-5s %s", l.Timestamp.UTC().Format("15:04:05"), l.Level, text)
}
