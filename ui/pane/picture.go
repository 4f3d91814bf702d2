package pane

import (
	"fmt"
	"strings"
)

// PictureOf is the picture of a workspace's solids, or of one of them; empty
// for no workspace.
func PictureOf(workspace, solid string) Item {
	if workspace == "" {
		return Item{}
	}
	return Item{Kind: "solid", ID: strings.TrimSuffix(workspace+"/"+solid, "/"), Workspace: workspace, Part: solid}
}

// Bar shows how much is done, 0 to 100, in w cells and as a number.
func Bar(done float64, w int, ascii bool) string {
	full, empty := "█", "░"
	if ascii {
		full, empty = "#", "-"
	}
	n := min(max(int(done/100*float64(w)+0.5), 0), w)
	return strings.Repeat(full, n) + strings.Repeat(empty, w-n) + fmt.Sprintf(" %.0f%%", done)
}
