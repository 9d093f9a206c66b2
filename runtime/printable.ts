/** Control characters, line ends, invisible characters such as those that reverse the direction of text, surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Characters of a text that the program prints: other programs and users write some of them. */
export const MAX_TEXT_CHARACTERS = 4096;

/** A text for one line of a terminal or log: unprintable characters as visible escapes, and not longer than the limit. */
export function printable(text: string, maxCharacters = MAX_TEXT_CHARACTERS): string {
  return cutText(text, maxCharacters).replace(UNPRINTABLE, (character) => {
    const code = character.charCodeAt(0);
    const hex = `\\x${code.toString(16).padStart(2, '0')}`;
    return SHORT_ESCAPES[character] ?? (code < 0x100 ? hex : unicodeEscape(character));
  });
}

/** JSON, or YAML in double quotes, without unprintable characters other than line ends, which are not part of a value. */
export function printableJson(json: string): string {
  return json.replace(UNPRINTABLE, (character) => (character === '\n' ? character : unicodeEscape(character)));
}

/** The text, or its beginning with the number of missing characters. */
export function cutText(text: string, maxCharacters: number): string {
  const missing = text.length - maxCharacters;
  return missing <= 0 ? text : `${text.slice(0, maxCharacters)}… (${missing} more characters)`;
}

function unicodeEscape(character: string): string {
  const units = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}
