package judge

import (
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"

	"swarmdeck/engine/core"
)

// toolClass says what tools do, by whole name or by a word in the name.
type toolClass struct {
	Effect string   `yaml:"effect" json:"effect"`
	Names  []string `yaml:"names" json:"names,omitempty"`
	Words  []string `yaml:"words" json:"words,omitempty"`
}

func (c *classifier) addTools(classes []toolClass) error {
	for _, k := range classes {
		if !slices.Contains(effectNames, k.Effect) {
			return core.Invalid("tools.effect", k.Effect, list(effectNames))
		}
		if k.Effect == effectRead && len(k.Words) > 0 {
			return core.Invalid("tools.words", k.Words[0], "whole names only for the effect read")
		}
		for _, n := range k.Names {
			c.tools[strings.ToLower(n)] = append(c.tools[strings.ToLower(n)], k.Effect)
		}
		for _, w := range k.Words {
			c.words[strings.ToLower(w)] = append(c.words[strings.ToLower(w)], k.Effect)
		}
	}
	return nil
}

// tool adds the effects of a tool call: what its name says, and what a
// command line among its arguments does.
func (c *classifier) tool(found *effects, a *Action) {
	whole := c.tools[strings.ToLower(a.Tool)]
	for _, e := range whole {
		found.add(e)
	}
	if len(whole) == 0 {
		found.unknown = !slices.Contains(a.Effects, effectRead) // by declaration
		for _, w := range nameWords(a.Tool) {
			for _, e := range c.words[w] {
				found.add(e)
			}
		}
	}
	if len(a.Args) == 0 {
		return
	}
	var args map[string]any
	if err := json.Unmarshal(a.Args, &args); err != nil {
		found.add(effectOpaque)
		return
	}
	if anyString(args, c.secret) {
		found.add(effectSecret)
	}
	told := c.command(found, args)
	told = c.command(found, nested(args, "input")) || told // of an agent's own tool
	if title := asText(args["title"]); !told && slices.Contains(found.names, effectExec) {
		c.parsed(found, title, "", 1) // some tell of a command nowhere else
	}
}

// command adds the effects of a command line among arguments; false is that there is none.
func (c *classifier) command(found *effects, args map[string]any) (told bool) {
	dir, _ := args["cwd"].(string)
	for _, key := range commandKeys {
		switch v := args[key].(type) {
		case string:
			told = told || v != ""
			c.text(found, v, dir, 1)
		case []any:
			words := make([]string, 0, len(v))
			for _, w := range v {
				s, _ := w.(string)
				words = append(words, s)
			}
			if len(words) > 0 && words[0] != "" {
				found.unknown, told = true, true
				c.run(found, command{words: words, dir: dir}, "", 0)
			}
		}
	}
	return told
}

func anyString(v any, match func(string) bool) bool {
	switch v := v.(type) {
	case string:
		return match(v)
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return anyString(e, match) })
	case map[string]any:
		for _, e := range v {
			if anyString(e, match) {
				return true
			}
		}
	}
	return false
}

// nameWords splits fs.delete_file, delete-file and deleteFile.
func nameWords(name string) []string {
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	lower := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			lower = false
			continue
		case unicode.IsUpper(r) && lower:
			flush()
		}
		lower = unicode.IsLower(r)
		word = append(word, r)
	}
	flush()
	return words
}
