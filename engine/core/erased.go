package core

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Erased is what stays of content that was removed: the SHA-256 of it, in hex,
// and how many bytes it had.
type Erased struct {
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// SHA256 is the digest of content in hex, "" of none; of what Erase and EraseText
// wrote it is that of the content before.
func SHA256(text string) string {
	if text == "" {
		return ""
	}
	if IsErasedText(text) {
		return text[len(text)-65 : len(text)-1]
	}
	if sum, ok := erasedSum(Raw(text)); ok {
		return sum
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Erase stands in the place of a JSON value: {"erased":{"sha256":…,"bytes":…}},
// which holds for an object too. What is erased already, and nothing, stay as
// they are.
func Erase(content Raw) Raw {
	if len(content) == 0 || IsErased(content) {
		return content
	}
	return MustEncode(map[string]Erased{"erased": {SHA256(string(content)), int64(len(content))}})
}

// IsErased reports a value that Erase wrote.
func IsErased(content Raw) bool {
	_, ok := erasedSum(content)
	return ok
}

func erasedSum(content Raw) (sum string, ok bool) {
	var e struct {
		Erased Erased `json:"erased"`
	}
	if len(content) > 200 || !bytes.HasPrefix(content, []byte(`{"erased":{`)) || Decode(content, &e) != nil || !isSHA256(e.Erased.SHA256) {
		return "", false
	}
	return e.Erased.SHA256, true
}

// EraseText is Erase of a text: "erased (12 bytes, sha256 …)".
func EraseText(text string) string {
	if text == "" || IsErasedText(text) {
		return text
	}
	return "erased (" + strconv.Itoa(len(text)) + " bytes, sha256 " + SHA256(text) + ")"
}

var erasedText = Pattern(`^erased \([0-9]{1,10} bytes, sha256 [0-9a-f]{64}\)$`)

// IsErasedText reports a text that EraseText wrote.
func IsErasedText(text string) bool { return erasedText().MatchString(text) }

func isSHA256(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}
