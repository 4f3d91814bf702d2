package secret_test

import (
	"strings"
	"testing"

	"swarmdeck/engine/secret"
	"swarmdeck/expect"
)

func TestACredentialAmongTheWordsOfACommandIsRefused(t *testing.T) {
	for _, word := range []string{
		"sk-ant-api03-0123456789abcdef0123", "--api-key=sk-0123456789abcdef0123", "Authorization: Bearer ghp_0123456789abcdefghijkl",
		"https://me:geheim@git.example/it.git", "curl -u x https://a:b$PART.rest@h/", "-----BEGIN RSA PRIVATE KEY-----\nxxxx",
	} {
		err := secret.CheckWords("argv", []string{"run", word})
		if err == nil || !strings.Contains(err.Error(), "argv: word 2 looks like a credential") || strings.Contains(err.Error(), "0123") || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%q: %v", word, err)
		}
	}
	for _, word := range []string{
		"sk-short", "git clone https://x:$TOKEN@git.example/it.git", "https://x:${TOKEN}@git.example", "psql postgres://localhost/db", "ssh://git@host/it",
		"Authorization: Bearer $KEY", "--token-file=/etc/token", "@NAME", "task-sk-1", "",
	} {
		expect.No(t, secret.CheckWords("argv", []string{word}), word)
	}
}
