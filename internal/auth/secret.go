package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"strings"
)

// TokenPrefix begins every API token, so that scanners for leaked secrets know it.
const TokenPrefix = "agrl_"

const (
	secretBytes = 32 // 256 bit
	tokenChars  = 43 // base 62 digits of 256 bit
	checkChars  = 6  // base 62 digits of a CRC-32
	shownChars  = len(TokenPrefix) + 6
)

// sum is what is stored of a secret. The secrets are random and long, so a fast hash is enough.
func sum(secret string) []byte {
	h := sha256.Sum256([]byte(secret))
	return h[:]
}

// newSecret returns 256 random bits as text for cookies and links.
func newSecret(r io.Reader) (string, error) {
	b := make([]byte, secretBytes)
	if _, err := io.ReadFull(r, b); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// isSecret reports whether s could come from newSecret.
func isSecret(s string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(b) == secretBytes
}

// newToken returns a plain API token: prefix, 256 random bits, checksum.
func newToken(r io.Reader) (string, error) {
	b := make([]byte, secretBytes)
	if _, err := io.ReadFull(r, b); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	body := base62(new(big.Int).SetBytes(b), tokenChars)
	return TokenPrefix + body + checksum(body), nil
}

// isToken reports whether s has the form and checksum of an API token, so that mistyped ones never reach the database.
func isToken(s string) bool {
	body, ok := strings.CutPrefix(s, TokenPrefix)
	if !ok || len(body) != tokenChars+checkChars {
		return false
	}
	return checksum(body[:tokenChars]) == body[tokenChars:]
}

func checksum(body string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(body)))), checkChars)
}

func base62(n *big.Int, width int) string {
	s := n.Text(62)
	return strings.Repeat("0", width-len(s)) + s
}
