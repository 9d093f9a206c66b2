import type { Mutant } from './mutants.ts';

/** A word, number, operator or bracket, but not comments and preprocessor lines. */
interface Token {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const TOKENS =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|^[ \t]*#(?:\\\n|[^\n])*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|\d\w*(?:\.\d\w*)?|->|\+\+|--|<<=|>>=|<<|>>|[<>=!+\-*/%&|^]=|&&|\|\||[^\s]/gm;

/** An operator and its replacement, only between two values, because elsewhere it could be a sign or an address. */
const OPERATORS = new Map(
  Object.entries({
    '<': '<=',
    '<=': '<',
    '>': '>=',
    '>=': '>',
    '==': '!=',
    '!=': '==',
    '&&': '||',
    '||': '&&',
    '+': '-',
    '-': '+',
    '/': '*',
    '%': '*',
    '&': '|',
    '|': '&',
    '<<': '>>',
    '>>': '<<',
    '+=': '-=',
    '-=': '+=',
  }),
);

/** Tokens that a statement can follow directly. */
const BEFORE_STATEMENT = new Set([';', '{', '}', ')', 'else', 'do']);
const CLOSING = new Map(Object.entries({ '(': ')', '[': ']', '{': '}' }));

/** Every mutant of a C source: operators, conditions, small and hexadecimal constants, and omitted calls. */
export function mutantsOfC(text: string): Mutant[] {
  const tokens = tokensOf(text);
  return tokens.flatMap((_, index) => mutationsAt(tokens, index));
}

function tokensOf(text: string): Token[] {
  return [...text.matchAll(TOKENS)]
    .map(({ 0: token, index }) => ({ text: token, start: index, end: index + token.length }))
    .filter(({ text: token }) => !/^(\/[*/]|[ \t]*#)/.test(token));
}

function mutationsAt(tokens: readonly Token[], index: number): Mutant[] {
  const token = tokens[index]!;
  const [before, after] = [tokens[index - 1]?.text ?? '', tokens[index + 1]?.text ?? ''];
  const change = (last: Token, replacement: string, operator: string, first = token): Mutant => ({
    start: first.start,
    end: last.end,
    replacement,
    operator,
    kind: 'expression',
  });
  const other = OPERATORS.get(token.text);
  if (other !== undefined) {
    return isValueEnd(before) ? [change(token, other, `${token.text} to ${other}`)] : [];
  }
  if (token.text === '!') return [change(token, '', '! left out')];
  if (/^([0-2]|0[xX][\da-fA-F]+)$/.test(token.text)) return [change(token, `(${token.text} + 1)`, 'number plus 1')];
  if ((token.text === 'if' || token.text === 'while') && after === '(') {
    const inner = tokens[index + 2]!;
    const last = tokens[closing(tokens, index + 1) - 1]!;
    const never = change(last, '0', 'condition to 0', inner);
    // A loop that always continues never ends.
    return token.text === 'while' ? [never] : [change(last, '1', 'condition to 1', inner), never];
  }
  if (/^[A-Za-z_]\w*$/.test(token.text) && after === '(' && BEFORE_STATEMENT.has(before)) {
    const end = tokens[closing(tokens, index + 1) + 1];
    if (end?.text === ';' && !['if', 'while', 'for', 'switch', 'return', 'sizeof'].includes(token.text)) {
      return [change(end, ';', 'call left out')];
    }
  }
  return [];
}

const isValueEnd = (text: string) => /^[\w)\]"']/.test(text) && !['return', 'case', 'sizeof'].includes(text);

/** The index of the bracket that closes the one at `open`. */
function closing(tokens: readonly Token[], open: number): number {
  const opened: string[] = [];
  for (let at = open; at < tokens.length; at++) {
    const { text } = tokens[at]!;
    const close = CLOSING.get(text);
    if (close !== undefined) opened.push(close);
    else if (text === opened.at(-1)) opened.pop();
    if (opened.length === 0) return at;
  }
  throw new SyntaxError(`the bracket at ${tokens[open]?.start} is not closed`);
}
