package kernel_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"
)

func TestTheCodeIsThePinnedBuildWithItsLicence(t *testing.T) {
	const want = "73e3b419ad31294f6b1cc478173944e50efc4a34bfdeeff0107bdfc12975f11c"
	code, err := os.ReadFile("manifold.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(code); hex.EncodeToString(sum[:]) != want {
		t.Errorf("manifold.wasm has SHA-256 %x, want %s", sum, want)
	}
	for name, text := range map[string]string{
		"fetch":            want,
		"LICENSE-manifold": "Apache License\n                           Version 2.0",
		"NOTICE-manifold":  "Manifold 3.5.4",
	} {
		if content, err := os.ReadFile(name); err != nil || !bytes.Contains(content, []byte(text)) {
			t.Errorf("%s does not say %q: %v", name, text, err)
		}
	}
}
