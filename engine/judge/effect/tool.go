package effect

import (
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"

	"swarmdeck/engine/core"
)

// Tools says what tools do, by whole name or by a word in the name.
type Tools struct {
	Effect string   `yaml:"effect" json:"effect"`
	Names  []string `yaml:"names" json:"names,omitempty"`
	Words  []string `yaml:"words" json:"words,omitempty"`
}

// CommandKeys are the names of arguments that are a command line, or a part of one.
var CommandKeys = []string{"argv", "command", "cmd", "script", "code"}

func (c *Classifier) addTools(classes []Tools) error {
	for _, k := range classes {
		if err := known("tools.effect", k.Effect); err != nil {
			return err
		}
		if k.Effect == Read && len(k.Words) > 0 {
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

// OfTool lists the effects of a tool call. None means unknown.
func (c *Classifier) OfTool(name string, args core.Raw, declared []string) []string {
	var found effects
	c.tool(&found, name, args, declared)
	return found.list()
}

// tool adds the effects of a tool call: what its name says, and what a
// command line among its arguments does.
func (c *Classifier) tool(found *effects, name string, in core.Raw, declared []string) {
	whole := c.tools[strings.ToLower(name)]
	for _, e := range whole {
		found.add(e)
	}
	if len(whole) == 0 {
		found.unknown = !slices.Contains(declared, Read) // by declaration
		for _, e := range c.named(name) {
			found.add(e)
		}
	}
	if len(in) == 0 {
		return
	}
	var args map[string]any
	if err := json.Unmarshal(in, &args); err != nil {
		found.add(Opaque)
		return
	}
	if anyString(args, c.secret) {
		found.add(Secret)
	}
	told := c.command(found, args)
	input, _ := args["input"].(map[string]any)
	told = c.command(found, input) || told // of an agent's own tool
	title, _ := args["title"].(string)
	runs := slices.Contains(found.names, Exec)
	if !told && runs {
		c.parsed(found, title, "", 1) // some tell of a command nowhere else
	}
	c.entitled(found, strings.Fields(title), runs)
}

// entitled adds that a title names a tool that publishes: some tell its name nowhere else.
func (c *Classifier) entitled(found *effects, title []string, runs bool) {
	for _, w := range title {
		name := w[strings.LastIndexAny(w, "/.:")+1:]
		if one := len(title) == 1; !(one && name == w) && !strings.Contains(name, "_") || !one && runs && !strings.HasPrefix(name, "mcp__") {
			continue
		}
		if slices.Contains(c.named(name), Publish) {
			found.add(Publish)
		}
	}
}

// named are the effects by words in a name, and by words that follow each other in it.
func (c *Classifier) named(name string) (all []string) {
	words := Words(name)
	for i := range words {
		for end := i + 1; end <= min(i+2, len(words)); end++ {
			all = append(all, c.words[strings.Join(words[i:end], " ")]...)
		}
	}
	return all
}

// command adds the effects of a command line among arguments; false is that there is none.
func (c *Classifier) command(found *effects, args map[string]any) (told bool) {
	dir, _ := args["cwd"].(string)
	for _, key := range CommandKeys {
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

// Words splits fs.delete_file, delete-file and deleteFile.
func Words(name string) []string {
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
