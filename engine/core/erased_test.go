package core_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"swarmdeck/engine/core"
	"swarmdeck/expect"
)

func FuzzErasedContentKeepsItsDigestAlone(f *testing.F) {
	for _, s := range []string{`{"a":1}`, "", "yes", `{"erased":{"sha256":"x","bytes":1}}`, "erased (3 bytes, sha256 x)", string(core.Erase(core.Raw(`{"a":1}`))), core.EraseText("yes")} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, content string) {
		value, text := core.Erase(core.Raw(content)), core.EraseText(content)
		if content == "" {
			expect.True(t, len(value) == 0 && text == "", "of nothing: %q, %q", value, text)
			return
		}
		expect.Must(t, core.IsErased(value) && core.IsErasedText(text) && string(core.Erase(value)) == string(value) && core.EraseText(text) == text,
			"%q: %q, %q", content, value, text)
		if core.IsErased(core.Raw(content)) || core.IsErasedText(content) {
			return // it holds no more than a digest
		}
		sum := sha256.Sum256([]byte(content))
		want := hex.EncodeToString(sum[:])
		for _, of := range []string{content, string(value), text} {
			expect.Is(t, core.SHA256(of), want, of)
		}
	})
}
