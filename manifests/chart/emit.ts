import { stringify } from 'yaml';
import { INDENT, type MapNode, PAD, type Raw, type Scalar, type SeqNode, type Tree } from './tree.ts';

/** The text of a Helm template that renders to the tree. */
export function emit(tree: Tree): string {
  return `${lines(tree, 0).join('\n')}\n`;
}

function lines(tree: Tree, indent: number): string[] {
  if (isMap(tree))
    return tree.entries.flatMap(({ key, value, when }) => guarded(when, entry(`${scalar(key)}:`, value, indent)));
  if (isSeq(tree)) return tree.items.flatMap(({ value, when }) => guarded(when, item(value, indent)));
  throw new Error('a manifest is a map');
}

/** Guards begin at the start of a line and remove the line break before them, so that they leave no trace. */
function guarded(when: string | undefined, inner: readonly string[]): string[] {
  return when === undefined ? [...inner] : [`{{- if ${when} }}`, ...inner, '{{- end }}'];
}

function entry(head: string, value: Tree, indent: number): string[] {
  const pad = ' '.repeat(indent);
  if (isMap(value) || isSeq(value)) {
    const empty = isMap(value) ? value.entries.length === 0 : value.items.length === 0;
    if (empty) return [`${pad}${head} ${isMap(value) ? '{}' : '[]'}`];
    return [`${pad}${head}`, ...lines(value, indent + 2)];
  }
  if (isRaw(value) && value.block) {
    return [`${pad}${head}`, ...block(value.text, indent + 2)];
  }
  const [first = '', ...rest] = leaf(value);
  return [`${pad}${head} ${first}`, ...rest.map((line) => (line === '' ? '' : `${pad}${line}`))];
}

function item(value: Tree, indent: number): string[] {
  const pad = ' '.repeat(indent);
  if (isRaw(value) && value.block) return block(value.text, indent);
  if (!isMap(value)) return entry('-', value, indent);
  // The first entry is on the line of the dash: in a list, a map begins with an entry without a condition.
  const [first, ...rest] = value.entries.toSorted(
    (a, b) => Number(a.when !== undefined) - Number(b.when !== undefined),
  );
  if (first === undefined) return [`${pad}- {}`];
  const [head = '', ...more] = entry(`${scalar(first.key)}:`, first.value, indent + 2);
  return [`${pad}- ${head.trimStart()}`, ...more, ...lines({ kind: 'map', entries: rest }, indent + 2)];
}

const block = (text: string, indent: number) =>
  text.replaceAll(INDENT, String(indent)).replaceAll(PAD, ' '.repeat(indent)).split('\n');

function leaf(value: Tree): string[] {
  if (isRaw(value)) return [value.text];
  if (typeof value === 'object' && value !== null && value.kind === 'choice') {
    const cases = value.others.map(
      ({ when, value: one }, index) => `{{ ${index > 0 ? 'else ' : ''}if ${when} }}${scalar(one)}`,
    );
    return [`${cases.join('')}{{ else }}${scalar(value.value)}{{ end }}`];
  }
  return scalar(value as Scalar).split('\n');
}

/** YAML text in which template syntax is escaped. */
function scalar(value: Scalar): string {
  // Format it within a map, so that the lines of a long text are indented.
  const text = stringify({ k: value }, { lineWidth: 0 }).slice('k: '.length).trimEnd();
  return text.replace(/\{\{|\}\}/g, (mark) => `{{ "${mark}" }}`);
}

const isMap = (tree: Tree): tree is MapNode => typeof tree === 'object' && tree !== null && tree.kind === 'map';
const isSeq = (tree: Tree): tree is SeqNode => typeof tree === 'object' && tree !== null && tree.kind === 'seq';
const isRaw = (tree: Tree): tree is Raw => typeof tree === 'object' && tree !== null && tree.kind === 'raw';
