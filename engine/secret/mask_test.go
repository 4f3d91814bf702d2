package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"swarmdeck/engine/secret"
	"swarmdeck/expect"
)

const canary = `p@ss/w0rd+"q' é&<1>?`

// spellings are the ways to print a value that a mask knows.
func spellings(value string) map[string]string {
	quoted, _ := json.Marshal(value)
	all := map[string]string{
		"plain": value, "hex": hex.EncodeToString([]byte(value)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(value))),
		"query": url.QueryEscape(value), "path": url.PathEscape(value), "json": string(quoted[1 : len(quoted)-1]),
	}
	for pad := range 3 {
		for name, enc := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding} {
			all[fmt.Sprintf("%s+%d", name, pad)] = enc.EncodeToString([]byte(strings.Repeat("~", pad) + value + "!?"))
		}
	}
	return all
}

func TestEverySpellingIsMaskedAcrossChunks(t *testing.T) {
	m := secret.NewMask(map[string]string{"PASS": canary, "OTHER": "another-value"})
	for name, text := range spellings(canary) {
		whole := m.String("<" + text + ">")
		expect.True(t, strings.Contains(whole, "[secret PASS]") && !strings.Contains(whole, text), "%s: %q is shown as %q", name, text, whole)
		rest := strings.Replace(whole, "[secret PASS]", "", 1)
		expect.True(t, len(rest) <= 12, "%s: %q leaves %q", name, text, rest)
		for size := 1; size < len(text)+2; size++ {
			var out bytes.Buffer
			w := m.Writer(&out)
			for rest := "<" + text + ">"; rest != ""; {
				n := min(size, len(rest))
				_, _ = io.WriteString(w, rest[:n])
				rest = rest[n:]
			}
			w.Close()
			expect.Must(t, out.String() == whole, "%s in chunks of %d: %q, want %q", name, size, out.String(), whole)
		}
	}
}

func TestWhatIsNoValueStays(t *testing.T) {
	m := secret.NewMask(map[string]string{"A": "abcdef-secret", "B": "abcdefg"})
	for text, want := range map[string]string{
		"":                           "",
		"abcde\nabcdef-secre":        "abcde\nabcdef-secre",
		"xabcdefgh":                  "x[secret B]h",
		"abcdef-secretabcdef-secret": "[secret A][secret A]",
		"abcdef-secreabcdef-secret":  "abcdef-secre[secret A]",
		"plain \x00 \xff text":       "plain \x00 \xff text",
	} {
		expect.Is(t, m.String(text), want, text, "is shown as")
	}
	var none *secret.Mask
	expect.True(t, none.String("x") == "x" && secret.NewMask(map[string]string{"A": "short"}) == nil, "a mask of nothing changes something")
}

func TestOverlappingValuesAreOne(t *testing.T) {
	m := secret.NewMask(map[string]string{"A": "abcdef", "B": "cdefghij", "C": "xabcdefy"})
	expect.Is(t, m.String("..abcdefghij..xabcdefy.."), "..[secret B]..[secret C]..")
	long := secret.NewMask(map[string]string{"A": "aaaaaa"})
	got := long.String(strings.Repeat("a", 1<<20))
	expect.True(t, got == "[secret A]", "%d bytes", len(got))
}

func TestBrokenBase64IsMasked(t *testing.T) {
	value := strings.Repeat("0123456789-secret-", 12)
	m := secret.NewMask(map[string]string{"LONG": value})
	for _, end := range []string{"\n", "\r\n"} {
		for _, width := range []int{64, 76} {
			encoded := base64.StdEncoding.EncodeToString([]byte("xy" + value + "z"))
			var broken strings.Builder
			for len(encoded) > width {
				broken.WriteString(encoded[:width] + end)
				encoded = encoded[width:]
			}
			broken.WriteString(encoded + end)
			got := m.String(broken.String())
			expect.True(t, len(got) <= 40, "%d columns: %q", width, got)
		}
	}
}

func TestLinesOfAValueAreMasked(t *testing.T) {
	key := "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASCBKcwggSjAgEAAoIBAQC7\n-----END PRIVATE KEY-----\n"
	m := secret.NewMask(map[string]string{"KEY": key})
	expect.Is(t, m.String("a\n"+key+"b"), "a\n[secret KEY]\nb")
	expect.Is(t, m.String("  AASCBKcwggSjAgEAAoIBAQC7\r\n"), "  [secret KEY]\r\n")
}

func TestJSONEscapesHideNothing(t *testing.T) {
	m := secret.NewMask(map[string]string{"S": "grün/geheim-😀"})
	var spelled strings.Builder
	for _, r := range "grün/geheim-" {
		fmt.Fprintf(&spelled, `\u%04X`, r)
	}
	spelled.WriteString(`\ud83d\uDE00`)
	for _, line := range []string{
		`{"type":"message","text":"` + spelled.String() + `"}`, `{"a":"gr\u00fcn\/geheim-😀"}`, `{"gr\u00fcn\/geheim-\ud83d\ude00":1}`,
	} {
		got := m.JSON([]byte(line))
		expect.True(t, json.Valid(got) && bytes.Contains(got, []byte("[secret S]")), "%s is shown as %s", line, got)
	}
	for _, line := range []string{`{"a":"\u0041\\u0041\/\ud800\"","b":"\ud83dx"}`, `plain \u0041`, `{"a":"\`, `{"a":"\u00`} {
		got := m.JSON([]byte(line))
		expect.True(t, string(got) == line, "%s became %s", line, got)
	}
}

// A value that a shell's own tools encode is masked as well.
func TestToolsOfTheSystemAreMasked(t *testing.T) {
	value := "s3cr3t-väl/ue+with \"quotes\" and 70 more bytes ............................................"
	m := secret.NewMask(map[string]string{"V": value})
	for _, line := range []string{`printf %s "$V"`, `echo "$V" | base64`, `printf 'user:%s' "$V" | base64 -w0`, `printf %s "$V" | od -An -v -tx1 | tr -d ' \n'`} {
		cmd := exec.Command("sh", "-c", line)
		cmd.Env = append(cmd.Environ(), "V="+value)
		out, err := cmd.Output()
		if err != nil {
			t.Skip(line, err)
		}
		got := m.String(string(out))
		expect.True(t, strings.Contains(got, "[secret V]") && len(got) <= 40, "%s: %q", line, got)
	}
}

func FuzzMask(f *testing.F) {
	f.Add("geheim-geheim", []byte("xgeheim-geheimgeheim"), uint8(3))
	f.Add("aaaaaaaa", []byte("aaaaaaaaaaaaaaab"), uint8(1))
	f.Fuzz(func(t *testing.T, value string, text []byte, size uint8) {
		value = strings.TrimSpace(value)
		if len(value) < secret.MinValue || len(value) > 200 || strings.Contains("[secret S]", value) {
			return
		}
		m := secret.NewMask(map[string]string{"S": value})
		text = append(append(text, value...), text...)
		whole := m.Bytes(text)
		var out bytes.Buffer
		w := m.Writer(&out)
		for rest := text; len(rest) > 0; {
			n := min(int(size)+1, len(rest))
			_, _ = w.Write(rest[:n])
			rest = rest[n:]
		}
		w.Close()
		expect.Must(t, bytes.Equal(out.Bytes(), whole), "in chunks %q, whole %q", out.Bytes(), whole)
		// Where a mask was put, what stands around it may make the value again.
		for _, part := range bytes.Split(whole, []byte("[secret S]")) {
			expect.Must(t, !bytes.Contains(part, []byte(value)), "%q holds %q", whole, value)
		}
		_ = m.JSON(text)
	})
}

func BenchmarkMask(b *testing.B) {
	values := map[string]string{"BIG": strings.Repeat("0123456789abcdef", 256)}
	for i := range 10 {
		values[fmt.Sprintf("S%d", i)] = fmt.Sprintf("sk-%d-%s", i, strings.Repeat("Ab1", 12))
	}
	m := secret.NewMask(values)
	rng := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the quick brown fox jumps over src/main.go:123 error warning ok sk-test PASS 0.003s base64 {\"type\":\"log\"}")
	var logs, noise bytes.Buffer
	for logs.Len() < 1<<20 {
		logs.WriteString(words[rng.IntN(len(words))] + " ")
	}
	for noise.Len() < 3<<18 {
		noise.WriteByte(byte(rng.Uint32()))
	}
	for name, text := range map[string][]byte{
		"log": logs.Bytes(), "base64": []byte(base64.StdEncoding.EncodeToString(noise.Bytes())), "hex": []byte(hex.EncodeToString(noise.Bytes())),
	} {
		b.Run(name, func(b *testing.B) {
			w := m.Writer(io.Discard)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for i := 0; i < len(text); i += 32 << 10 {
					_, _ = w.Write(text[i:min(i+32<<10, len(text))])
				}
			}
		})
	}
}

func TestTheEndOfAValueIsMaskedWhereItsBeginningIsNot(t *testing.T) {
	m := secret.NewMask(map[string]string{"KEY": "correct horse battery"})
	for text, want := range map[string]string{
		"battery\nand correct horse battery": "[secret KEY]\nand [secret KEY]",
		"tery":                               "[secret KEY]",
		"ery\n":                              "ery\n",
		"horse":                              "[secret KEY]",
		"horse power":                        "horse power",
		"correct horse battery":              "[secret KEY]",
		"":                                   "",
	} {
		expect.Is(t, string(m.Rest([]byte(text))), want, text)
	}
	expect.Is(t, string((*secret.Mask)(nil).Rest([]byte("x"))), "x")
	expect.Is(t, secret.NewMask(m.Values()).String("correct horse battery"), "[secret KEY]")
}
