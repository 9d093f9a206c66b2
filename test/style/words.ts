export interface StyleRule {
  /** Matched as whole words, in any case. */
  readonly phrase: RegExp;
  readonly use: string;
  /** A text that the phrase matches. */
  readonly example: string;
}

const rule = (phrase: string, use: string, example = phrase.split('|')[0] ?? ''): StyleRule => ({
  phrase: new RegExp(`\\b(?:${phrase})\\b`, 'gi'),
  use,
  example,
});

/** The one list of docs/maintainers/style.md: words first, sentence patterns below them. */
export const WORDS: readonly StyleRule[] = [
  rule('told', 'reported, given, informed, configured'),
  rule('foretold|foretell|foretells', 'predicted, predict'),
  rule('nobody', 'no one, or name the component'),
  rule('somebody', 'someone, or name the person: a user, an administrator'),
  rule('beside', 'next to, in addition to'),
  rule('anew', 'again'),
  rule('passed over|passes over', 'skipped, ignored'),
  rule('is let|are let|let be', 'may, is left alone'),
  rule('(?:is|are|was|were) known of', 'the known facts about', 'what is known of'),
  rule('gets? to know', 'learns, detects', 'gets to know'),
  rule('what becomes of|became of', 'what happens to'),
  rule('hangs? on (?!to)', 'depends on', 'hangs on'),
  rule('all the same', 'anyway, nevertheless'),
  rule('for want of', 'without, because … is missing'),
  rule('goes by|went by', 'uses, follows'),
  rule('put right|puts right', 'corrected, repaired'),
  rule('in the place of', 'instead of'),
  rule('at the most', 'at most'),
  rule('(?:is|are) away', 'is down, is not available', 'is away'),
  rule('goes on|go on|went on', 'continues, keeps'),
  rule('whoever', 'anyone who, the user who'),
  rule('is said|are said', 'is reported, is logged'),
  rule('is taken for|are taken for', 'counts as'),
  rule('for good', 'permanently'),
  rule('none of (?:its|their) business', 'not handled by it', 'none of its business'),
  rule('takes? to be', 'considers', 'takes to be'),
];

/** Sentence patterns that make a reader read twice. */
export const PATTERNS: readonly StyleRule[] = [
  rule('(?:is|are) to be', 'must be, will be, or an active verb', 'is to be'),
  rule(
    'so (?:does|do|is|are|has|have|will) (?:the|a|an|its|what|every)',
    'put the subject first: "The agent does, too."',
    'so does the',
  ),
  rule(
    'it is (?:the|its|their) \\w+ (?:that|which|who)',
    'put the subject first: "The agent reports …"',
    'it is the agent that',
  ),
  rule('that is (?:how|what|why|where)', 'put the subject first', 'that is why'),
];

/** Words that a sentence of a page may have. */
export const MAX_SENTENCE_WORDS = 45;
