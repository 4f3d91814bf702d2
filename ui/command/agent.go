package command

import (
	"fmt"

	"swarmdeck/engine/face"
	"swarmdeck/engine/task"
)

// logText is a log line as it is followed.
func logText(l task.LogLine, wide bool) string {
	if wide {
		return fmt.Sprintf("%s %-5s %s %s", face.Stamp(l.Timestamp), l.Level, l.Source, l.Message)
	}
	return fmt.Sprintf("%s %-5s %s", l.Timestamp.UTC().Format("15:04:05"), l.Level, l.Message)
}
