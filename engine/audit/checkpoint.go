package audit

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// heads is the small bucket of the log's newest checkpoint and of the
// verifier keys ever used for it.
const heads store.Bucket = "audit_head"

var (
	checkpointKey = []byte("checkpoint")
	verifiersKey  = []byte("verifiers") // see namedText
	endorsedKey   = []byte("endorsed")  // see Endorsed
)

// maxCheckpoint bounds what is read as a checkpoint: three lines and some
// signatures.
const maxCheckpoint = 64 << 10

// Origin names a tenant's log in its checkpoints, and its keys.
func Origin(tenant string) string { return "swarmdeck/" + tenant }

// Checkpoint is the signed head of a log (C2SP tlog-checkpoint).
type Checkpoint struct {
	Origin string
	Size   uint64 // events
	Root   [32]byte
	Signer string // the verifier key that its signature was checked with
}

// ErrUnsigned means that no given key signed a checkpoint, which otherwise
// reads well.
var ErrUnsigned = errors.New("not signed by a known key")

// ParseCheckpoint reads a checkpoint of any origin and checks its signature
// with the verifier keys. With ErrUnsigned the checkpoint is returned too.
func ParseCheckpoint(data []byte, verifiers ...string) (Checkpoint, error) {
	if len(data) > maxCheckpoint {
		return Checkpoint{}, fmt.Errorf("checkpoint: %d bytes, at most %d are allowed", len(data), maxCheckpoint)
	}
	var known []note.Verifier
	seen := map[string]bool{}
	for _, key := range verifiers {
		v, err := note.NewVerifier(key)
		if err != nil {
			return Checkpoint{}, core.Invalid("verifier", key, "a verifier key NAME+HASH+KEY as printed by audit checkpoint")
		}
		if !seen[key] {
			known = append(known, v)
		}
		seen[key] = true
	}
	n, err := note.Open(data, note.VerifierList(known...))
	var unsigned *note.UnverifiedNoteError
	if errors.As(err, &unsigned) {
		n, err = unsigned.Note, nil
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint: %w", err)
	}
	c, err := parseHeadLines(n.Text)
	if err != nil {
		return Checkpoint{}, err
	}
	for _, sig := range n.Sigs {
		// One signature, one spelling: base64 leaves spare bits at its end.
		if raw, err := base64.StdEncoding.Strict().DecodeString(sig.Base64); err != nil || base64.StdEncoding.EncodeToString(raw) != sig.Base64 {
			return Checkpoint{}, fmt.Errorf("checkpoint: the signature of %s is not plain base64", core.Clip(sig.Name))
		}
	}
	for _, key := range verifiers {
		for _, sig := range n.Sigs {
			if sig.Name == c.Origin && strings.HasPrefix(key, fmt.Sprintf("%s+%08x+", sig.Name, sig.Hash)) {
				c.Signer = key
			}
		}
	}
	if c.Signer == "" {
		return c, fmt.Errorf("checkpoint of %s: %w", c.Origin, ErrUnsigned)
	}
	return c, nil
}

func parseHeadLines(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 { // the last one is what follows the final line break
		return Checkpoint{}, errors.New("checkpoint: want three lines: origin, size, root hash")
	}
	c := Checkpoint{Origin: lines[0]}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return Checkpoint{}, fmt.Errorf("checkpoint: size %q is not a count", core.Clip(lines[1]))
	}
	c.Size = uint64(size)
	root, ok := parseHash(lines[2])
	if !ok {
		return Checkpoint{}, fmt.Errorf("checkpoint: root hash %q is not the base64 of 32 bytes", core.Clip(lines[2]))
	}
	if c.Origin == "" {
		return Checkpoint{}, errors.New("checkpoint: empty origin")
	}
	c.Root = root
	return c, nil
}

// parseHash reads the one base64 form of a hash.
func parseHash(s string) (h tlog.Hash, ok bool) {
	raw, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) != tlog.HashSize || base64.StdEncoding.EncodeToString(raw) != s {
		return h, false
	}
	return tlog.Hash(raw), true
}

// headText is the body of a checkpoint.
func headText(origin string, size uint64, root tlog.Hash) string {
	return origin + "\n" + strconv.FormatUint(size, 10) + "\n" + root.String() + "\n"
}

// HeadOf is the newest signed checkpoint as a transaction sees it, nil when there is
// none yet.
func HeadOf(tx store.Tx) ([]byte, error) {
	head, err := tx.Get(heads, checkpointKey)
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of %s: %w", tx.Tenant(), err)
	}
	return bytes.Clone(head), nil
}

// Checkpoint is the newest signed checkpoint (C2SP tlog-checkpoint note). One
// kept outside the data file lets Verify notice later that the log was cut or
// rewritten, even by one who has the key.
func (l *Ledger) Checkpoint(ctx context.Context, tenant string) ([]byte, error) {
	var head []byte
	err := l.st.View(ctx, tenant, func(tx store.Tx) (err error) {
		head, err = needHead(tx)
		return err
	})
	return head, err
}

// needHead is HeadOf of a log that must have one.
func needHead(tx store.Tx) ([]byte, error) {
	head, err := HeadOf(tx)
	if err == nil && head == nil {
		err = core.Errorf(core.NotFound, "the audit log of %s has no checkpoint yet", tx.Tenant())
	}
	return head, err
}

// signedCheckpoint reads a checkpoint of a tenant's log, which a key has to have signed
// that might when the log had that size.
func (l *Ledger) signedCheckpoint(ctx context.Context, tenant string, text []byte) (c Checkpoint, err error) {
	var named []namedKey
	err = l.st.View(ctx, tenant, func(tx store.Tx) error {
		named, err = readNamed(tx)
		return err
	})
	if err == nil && len(named) == 0 {
		err = core.Errorf(core.NotFound, "this tenant's log has no signing key yet; name one with --key").With("field", "key")
	}
	if err != nil {
		return c, err
	}
	if c, err = ParseCheckpoint(text, verifiersOf(tenant, named)...); err != nil {
		return c, err
	}
	if may := signersAt(tenant, named, c.Size); !may.may(c.Signer) {
		return c, fmt.Errorf("checkpoint of %d events: it is signed with key %s, which might not sign it then", c.Size, keyID(c.Signer))
	}
	return c, nil
}
