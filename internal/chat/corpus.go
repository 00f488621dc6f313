package chat

import (
	"iter"

	"agentrl/internal/tokenizer"
	"agentrl/internal/trajectory"
)

// Corpus yields the texts that the formats encode separately, so that a tokenizer trained on them sees the same word
// beginnings. Tool calls contribute the values of their arguments.
func Corpus(conversations iter.Seq[[]trajectory.Message], tools []trajectory.Tool) iter.Seq[string] {
	schemas := map[string]schema{}
	for _, t := range tools {
		if s, err := parseSchema(t); err == nil {
			schemas[t.Name] = s
		}
	}
	return func(yield func(string) bool) {
		for msgs := range conversations {
			for _, m := range msgs {
				if m.Content != "" && !yield(m.Content) {
					return
				}
				for _, call := range m.ToolCalls {
					values, err := positional(schemas[call.Name], call.Arguments)
					if err != nil {
						values = []string{call.Arguments}
					}
					for _, v := range values {
						if !yield(v) {
							return
						}
					}
				}
			}
		}
	}
}

// TrainTokenizer trains a tokenizer with the special tokens of the formats on conversations. vocab is the upper bound
// of its size; 1024 suits the smallest models.
func TrainTokenizer(conversations iter.Seq[[]trajectory.Message], tools []trajectory.Tool, vocab int) (*tokenizer.Tokenizer, error) {
	return tokenizer.Train(Corpus(conversations, tools), tokenizer.TrainOptions{VocabSize: vocab, Special: SpecialTokens()})
}
