package web

import (
	"encoding/base64"
	"encoding/json"
	"net/http"

	"agentrl/templates"
)

const flashCookie = "agentrl_flash"

// SetFlash leaves a message for the next page. kind is "good", "bad" or "information".
func (r *request) SetFlash(kind, text string) {
	b, err := json.Marshal(templates.Flash{Kind: kind, Text: clip(text, 600)})
	if err != nil {
		return
	}
	r.c.SetCookie(r.s.cookie(flashCookie, base64.RawURLEncoding.EncodeToString(b), 60))
}

// takeFlash reads the pending message and clears it.
func (r *request) takeFlash() templates.Flash {
	var f templates.Flash
	ck, err := r.c.Cookie(flashCookie)
	if err != nil || ck.Value == "" {
		return f
	}
	r.c.SetCookie(r.s.cookie(flashCookie, "", -1))
	b, err := base64.RawURLEncoding.DecodeString(ck.Value)
	if err != nil || json.Unmarshal(b, &f) != nil {
		return templates.Flash{}
	}
	switch f.Kind {
	case "good", "bad", "information":
	default:
		f.Kind = "information"
	}
	return f
}

// cookie builds a cookie with the attributes that all of ours share. maxAge is in seconds; negative deletes.
func (s *Server) cookie(name, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode,
	}
}
