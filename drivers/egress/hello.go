package egress

import "golang.org/x/crypto/cryptobyte"

// maxHello bounds a TLS greeting, in bytes with its record headers.
const maxHello = 16 << 10

// helloState is how far a client's first bytes tell what they are.
type helloState int

const (
	partial helloState = iota // TLS as far as can be seen, or nothing yet
	whole                     // a ClientHello
	notTLS                    // something else
	damaged                   // begins as TLS, but is no greeting that can be read in one way, or too long
)

// hello is what a client's first bytes are.
type hello struct {
	state helloState
	name  string // the server name; "" without one
	need  int    // partial: bytes there must be before more can be told
}

// Numbers of TLS (RFC 8446, RFC 6066).
const (
	recordFirst      = 20 // kinds of records; some servers pass over others before a greeting
	recordHandshake  = 22
	recordLast       = 24
	handshakeHello   = 1
	extServerName    = 0
	nameHost         = 0
	maxRecordPayload = 16<<10 + 256
	recordHead       = 5   // bytes
	maxRecords       = 256 // of one greeting
)

// readHello reads a ClientHello that may be split over records, from what has
// come so far.
func readHello(data []byte) hello {
	if len(data) >= 1 && (data[0] < recordFirst || data[0] > recordLast) || len(data) >= 2 && data[1] != 3 {
		return hello{state: notTLS}
	}
	var message []byte
	rest := cryptobyte.String(data)
	for range maxRecords {
		need := len(data) - len(rest) + recordHead
		if len(data) < 2 {
			need = len(data) + 1 // the first two tell what it is
		}
		var kind, major, minor uint8
		var payload cryptobyte.String
		if len(data) >= 2 && len(rest) >= 1 && rest[0] != recordHandshake || len(rest) >= 2 && rest[1] != 3 {
			return hello{state: damaged}
		}
		if len(rest) >= recordHead {
			n := int(rest[3])<<8 | int(rest[4])
			if n == 0 || n > maxRecordPayload {
				return hello{state: damaged}
			}
			need += n
		}
		if need > maxHello {
			return hello{state: damaged}
		}
		if !rest.ReadUint8(&kind) || !rest.ReadUint8(&major) || !rest.ReadUint8(&minor) || !rest.ReadUint16LengthPrefixed(&payload) {
			return hello{state: partial, need: need}
		}
		message = append(message, payload...)
		if len(message) >= 1 && message[0] != handshakeHello {
			return hello{state: damaged}
		}
		if len(message) < 4 {
			continue
		}
		body := cryptobyte.String(message[1:])
		var in cryptobyte.String
		if !body.ReadUint24LengthPrefixed(&in) {
			continue
		}
		if !body.Empty() { // a greeting stands alone
			return hello{state: damaged}
		}
		name, ok := serverName(in)
		if !ok {
			return hello{state: damaged}
		}
		return hello{state: whole, name: name}
	}
	return hello{state: damaged}
}

// serverName reads the one server name of a ClientHello; "" without one, false
// when it is damaged or could be read in two ways.
func serverName(in cryptobyte.String) (name string, ok bool) {
	var session, ciphers, compression, extensions cryptobyte.String
	if !in.Skip(2+32) || !in.ReadUint8LengthPrefixed(&session) || !in.ReadUint16LengthPrefixed(&ciphers) || !in.ReadUint8LengthPrefixed(&compression) {
		return "", false
	}
	if in.Empty() {
		return "", true
	}
	if !in.ReadUint16LengthPrefixed(&extensions) || !in.Empty() {
		return "", false
	}
	for seen := false; !extensions.Empty(); {
		var kind uint16
		var data, names, host cryptobyte.String
		if !extensions.ReadUint16(&kind) || !extensions.ReadUint16LengthPrefixed(&data) {
			return "", false
		}
		if kind != extServerName {
			continue
		}
		var nameKind uint8
		if seen || !data.ReadUint16LengthPrefixed(&names) || !data.Empty() ||
			!names.ReadUint8(&nameKind) || nameKind != nameHost || !names.ReadUint16LengthPrefixed(&host) || !names.Empty() || len(host) == 0 {
			return "", false
		}
		seen, name = true, string(host)
	}
	return name, true
}
