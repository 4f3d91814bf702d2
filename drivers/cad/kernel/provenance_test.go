package kernel_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"testing"

	"swarmdeck/expect"
)

func TestTheCodeIsThePinnedBuildWithItsLicence(t *testing.T) {
	const want = "73e3b419ad31294f6b1cc478173944e50efc4a34bfdeeff0107bdfc12975f11c"
	file := expect.Of(os.Open("manifold.wasm.gz"))(t)
	defer file.Close()
	code := expect.Of(gzip.NewReader(file))(t)
	sum := sha256.New()
	if _, err := io.Copy(sum, code); err != nil || hex.EncodeToString(sum.Sum(nil)) != want {
		t.Errorf("manifold.wasm has SHA-256 %x, want %s: %v", sum.Sum(nil), want, err)
	}
	for name, text := range map[string]string{
		"fetch":            want,
		"LICENSE-manifold": "Apache License\n                           Version 2.0",
		"NOTICE-manifold":  "Manifold 3.5.4",
	} {
		content, err := os.ReadFile(name)
		expect.True(t, err == nil && bytes.Contains(content, []byte(text)), "%s does not say %q: %v", name, text, err)
	}
}
