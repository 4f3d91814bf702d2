package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"swarmdeck/engine/core"
)

// hidden reports characters that a screen would obey or not show: controls
// other than tab and line break, formats such as bidirectional overrides and
// zero widths, and separators of lines.
func hidden(r rune) bool {
	return r != '\n' && r != '\t' && (r == utf8.RuneError || r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0' ||
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Variation_Selector))
}

// clean drops what is hidden from a text that others wrote.
func clean(s string) string {
	if strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, s)
}

// line is a clean text on one line of at most n bytes.
func line(s string, n int) string {
	return core.ClipTo(strings.Join(strings.Fields(clean(s)), " "), n)
}

// cleanJSON is a JSON text with all its strings clean.
func cleanJSON(data core.Raw) (core.Raw, error) {
	if bytes.IndexFunc(data, hidden) < 0 && !bytes.Contains(data, []byte(`\u`)) && !bytes.Contains(data, []byte(`\b`)) &&
		!bytes.Contains(data, []byte(`\f`)) && !bytes.Contains(data, []byte(`\r`)) {
		return data, nil
	}
	var out bytes.Buffer
	// Two names may be the same once they are clean.
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	enc := jsontext.NewEncoder(&out, jsontext.AllowDuplicateNames(true))
	for {
		token, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimSpace(out.Bytes()), nil
		}
		if err == nil && token.Kind() == '"' {
			token = jsontext.String(clean(token.String()))
		}
		if err == nil {
			err = enc.WriteToken(token)
		}
		if err != nil {
			return nil, fmt.Errorf("clean a result: %w", err)
		}
	}
}
