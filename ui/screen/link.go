package screen

import (
	"slices"
	"strings"
)

// maxLink bounds a link, in bytes: terminals take no longer ones.
const maxLink = 2000

// maxLinks bounds the links in a picture.
const maxLinks = 1<<16 - 1

// Opens reports whether a terminal may be handed a link to open: one of the web, in
// printable ASCII, without the semicolon that the toolkit takes for an end.
func Opens(to string) bool {
	if len(to) > maxLink || !strings.HasPrefix(to, "https://") && !strings.HasPrefix(to, "http://") {
		return false
	}
	for i := range len(to) {
		if to[i] <= ' ' || to[i] > '~' || to[i] == ';' {
			return false
		}
	}
	return true
}

// Link makes the cells of r open a link in terminals that can (OSC 8), until they are drawn
// anew. What may not be opened is left out.
func (c *Canvas) Link(r Rect, to string) {
	g := c.g
	if r = r.Clip(c.Bounds()); r.Empty() || !Opens(to) || len(g.links) >= maxLinks {
		return
	}
	if n := len(g.links); n == 0 || g.links[n-1] != to {
		g.links = append(g.links, to)
	}
	for k := range c.cellsOf(r) {
		k.link = uint16(len(g.links))
	}
}

// appendLink begins a link, or ends the one that is open.
func (g *cells) appendLink(out []byte, n uint16) []byte {
	out = append(out, "\x1b]8;;"...)
	if n > 0 && int(n) <= len(g.links) {
		out = append(out, g.links[n-1]...)
	}
	return append(out, "\x1b\\"...)
}

// TellLinks says whether a terminal is told of links when the picture is drawn on it.
func (c *Canvas) TellLinks(on bool) { c.g.silent = !on }

// Links are what cells of the window open, each once, in reading order.
func (c *Canvas) Links() (all []string) {
	seen := map[uint16]bool{0: true}
	for y := range c.H() {
		for _, k := range c.row(y) {
			if !seen[k.link] && int(k.link) <= len(c.g.links) && !slices.Contains(all, c.g.links[k.link-1]) {
				all = append(all, c.g.links[k.link-1])
			}
			seen[k.link] = true
		}
	}
	return all
}

// LinkAt is what a cell of the window opens, "" for nothing.
func (c *Canvas) LinkAt(x, y int) string {
	if k := c.cell(x, y); k.link > 0 && int(k.link) <= len(c.g.links) {
		return c.g.links[k.link-1]
	}
	return ""
}
