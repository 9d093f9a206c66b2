import { readFileSync } from 'node:fs';

export interface GuideBlock {
  readonly lines: readonly string[];
  /** What the comment before the block says: `stays`, `needs kubectl`; '' without one. */
  readonly mark: string;
}

/** A command of an indented block; those are used for output, too. */
const COMMAND = /^(?:npm|npx|plumbline|kubectl) /;

export function readBlocks(path: string): GuideBlock[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  const blocks: GuideBlock[] = [];
  for (let i = 0; i < lines.length; i++) {
    const fence = /^```(\w*)/.exec(lines[i] ?? '');
    const isIndented = /^ {4}\S/.test(lines[i] ?? '');
    if (fence === null && !isIndented) continue;
    let end = i + 1;
    while (end < lines.length && (fence ? lines[end] !== '```' : /^ {4}\S/.test(lines[end] ?? ''))) end++;
    const own = fence ? lines.slice(i + 1, end) : lines.slice(i, end).map((line) => line.slice(4));
    const commands = own.filter((line) => (fence ? line.trim() !== '' && !line.startsWith('#') : COMMAND.test(line)));
    const before = lines.slice(0, i).findLast((line) => line.trim() !== '') ?? '';
    const [, mark = ''] = /^<!-- (.*) -->$/.exec(before) ?? [];
    if (commands.length > 0 && (fence === null || fence[1] === 'sh')) {
      blocks.push({ lines: commands.map((line) => line.replace(/\s+# .*$/, '')), mark });
    }
    i = end - (fence ? 0 : 1);
  }
  return blocks;
}
