package acp

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"

	acp "github.com/coder/acp-go-sdk"

	"swarmdeck/engine/core"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/safeopen"
)

// Bounds of what a prompt carries of files, in bytes. Of a larger one it carries the link.
const (
	maxTrim    = 8 // bytes that may end a sentence after a path
	maxCarried = 256 << 10
	maxCarry   = 1 << 20 // of all files of a prompt
)

var _ fleet.Attacher = (*Runtime)(nil)

func (r *Runtime) Attaches(a fleet.Agent, path string) error {
	p, err := r.placeOf(a)
	if err == nil && p.there != nil {
		err = p.there.learn()
	}
	if err != nil {
		return err
	}
	_, _, err = p.attached(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return core.Invalid("attach", path, "a file within "+p.Spec.Dir)
	case err != nil:
		return core.Errorf(core.InvalidInput, "attach: %q can't be attached: %v", path, err).With("field", "attach").With("value", path)
	}
	return nil
}

// attached finds a file that a message mentions: where it is, and what is in it, unless
// that is more than a prompt carries or no text. No link is followed.
func (p place) attached(path string) (full, text string, err error) {
	if filepath.IsAbs(path) || !filepath.IsLocal(path) {
		return "", "", core.Errorf(core.InvalidInput, "it is not named by its path within %s", p.Spec.Dir)
	}
	at := p.machine()
	full = filepath.Join(at.Real(), path)
	data, err := at.Read(full, maxCarried)
	if errors.Is(err, safeopen.ErrTooLarge) {
		return full, "", nil
	}
	if err == nil && utf8.Valid(data) && !strings.ContainsRune(string(data), 0) {
		text = string(data)
	}
	return full, text, err
}

// attachments are the blocks of the files that a prompt mentions, and a line for the log.
// What names no file is text.
func (s *session) attachments(text string) (blocks []acp.ContentBlock, e fleet.Event) {
	var said []string
	carry := maxCarry
	e = fleet.Event{Type: "log", Level: "INFO"}
	for _, path := range fleet.Mentions(text) {
		if len(blocks) == fleet.MaxAttached {
			e.Level = "WARN"
			said = append(said, fmt.Sprintf("%s and what follows are not attached: there are %d files already", path, fleet.MaxAttached))
			break
		}
		full, content, err := s.a.place.attached(path)
		for trim := 0; trim < maxTrim && err != nil && strings.ContainsRune(".,;:!?)]}>'\"`", rune(path[len(path)-1])) && len(path) > 1; trim++ {
			path = path[:len(path)-1] // it may end a sentence
			full, content, err = s.a.place.attached(path)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			e.Level = "WARN"
			said = append(said, fmt.Sprintf("%s can't be attached: %v", path, err))
			continue
		}
		uri := (&url.URL{Scheme: "file", Path: full}).String()
		if content == "" || len(content) > carry || string(s.pe.can.AgentCapabilities.PromptCapabilities.EmbeddedContext) != "true" {
			blocks = append(blocks, acp.ResourceLinkBlock(filepath.Base(path), uri))
			said = append(said, "attached "+path+" by its name")
			continue
		}
		carry -= len(content)
		blocks = append(blocks, acp.ResourceBlock(acp.EmbeddedResourceResource{TextResourceContents: &acp.TextResourceContents{Uri: uri, Text: content}}))
		said = append(said, fmt.Sprintf("attached %s, %d bytes", path, len(content)))
	}
	e.Text = core.ClipTo(strings.Join(said, "\n"), maxLogLine)
	return blocks, e
}
