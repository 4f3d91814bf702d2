package env

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Limits of files.
const (
	maxWritten = 256 << 20 // bytes
	// maxJournalled bounds what the solids of a file take in a journal's entry,
	// which is one line of 10 MiB at most when it is told.
	maxJournalled = 7 << 20
)

// formatOf is the format asked for, or that the file's name ends in.
func formatOf(asked, name string) string {
	if asked == "" {
		asked = strings.TrimPrefix(path.Ext(name), ".")
	}
	f := strings.ToUpper(asked)
	if f == "STP" {
		f = "STEP"
	}
	return f
}

// fits refuses formats that the kernel does not have.
func (c *call) fits(format string, has []string) error {
	about := c.env.bench.about
	switch {
	case slices.Contains(has, format):
		return nil
	case slices.Contains([]string{"STEP", "IGES", "BREP", "STL", "OBJ", "3MF", "PLY", "SVG", "DXF", "JSON"}, format) && about.Name == Embedded:
		return Unsupported("format", format, about.Name, other(about.Name))
	}
	return Refuse(UnsupportedFormat, "format", format, fmt.Sprintf("format: %v is not known", shown(format)), "give one of "+strings.Join(has, ", "))
}
