import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { printableJson } from '../../runtime/printable.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import { type Line, lineText, type Sink, type Terminal, terminalOf } from './terminal.ts';

export type OutputFormat = 'text' | 'wide' | 'name' | 'json' | 'yaml';

export function ageText(age: number): string {
  if (age < 120) return `${Math.round(age)} s`;
  if (age < 7200) return `${Math.round(age / 60)} min`;
  return `${Math.round(age / 3600)} h`;
}

const RENEWAL = /\b(last renew(?:al|ed)) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)/g;

/** Texts of objects have times; ages are computed when they are read. */
const withAges = (text: string, nowMilliseconds: number): string =>
  text.replace(RENEWAL, (_, what: string, time: string) => {
    return `${what} ${ageText(Math.max(0, nowMilliseconds - Date.parse(time)) / 1000)} ago`;
  });

interface Texts {
  readonly text: (terminal: Terminal, wide: boolean) => readonly Line[];
  readonly name?: () => readonly string[];
}

/** Writes the result of a command to standard output. `data` is for scripts; its fields are stable. */
export async function print(format: OutputFormat | undefined, data: unknown, texts: Texts): Promise<void> {
  const terminal = terminalOf(process.stdout);
  switch (format ?? 'text') {
    case 'json':
      return write(printableJson(`${JSON.stringify(data, null, 2)}\n`));
    case 'yaml': {
      const { yamlText } = await import('./yaml.ts');
      return write(yamlText(data));
    }
    case 'name':
      return printLines(texts.name?.() ?? texts.text(terminal, false));
    case 'wide':
      return printLines(texts.text(terminal, true));
    case 'text':
      return printLines(texts.text(terminal, false));
  }
}

export function printLines(lines: readonly Line[]): void {
  const { color } = terminalOf(process.stdout);
  write(withAges(lines.map((line) => `${lineText(line, color)}\n`).join(''), Date.now()));
}

export function printMessage(text: string): void {
  process.stderr.write(`${lineText(text)}\n`);
}

function write(text: string): void {
  process.stdout.write(text);
}

/** Ctrl-C is the normal end of a command that runs until then, not a failure. */
export async function untilInterrupted(run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const controller = new AbortController();
  const stop = () => controller.abort();
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    await run(controller.signal);
  } finally {
    process.removeListener('SIGINT', stop).removeListener('SIGTERM', stop);
  }
}

type Out = Sink & Pick<NodeJS.WriteStream, 'write'>;

/** Seconds between two updates of the bar, and between two plain lines: shorter work prints nothing. */
const BAR_INTERVAL_SECONDS = 0.05;
const PLAIN_INTERVAL_SECONDS = 10;
const BAR_CHARACTERS = 30;

export function createProgress(out: Out = process.stderr, nowSeconds = monotonicSeconds) {
  const isBar = out.isTTY === true;
  const { width } = terminalOf(out);
  let last = isBar ? Number.NEGATIVE_INFINITY : nowSeconds();
  let drawn = false;
  return {
    update(done: number, text: string) {
      if (nowSeconds() - last < (isBar ? BAR_INTERVAL_SECONDS : PLAIN_INTERVAL_SECONDS)) return;
      last = nowSeconds();
      drawn = true;
      const share = Math.min(1, Math.max(0, done));
      const full = Math.round(share * BAR_CHARACTERS);
      const bar = `${'█'.repeat(full)}${'░'.repeat(BAR_CHARACTERS - full)} ${lineText(text)}`;
      const plain = `${String(Math.floor(share * 100)).padStart(3)} %  ${lineText(text)}\n`;
      out.write(isBar ? `\r\x1b[K${bar.slice(0, Math.max(0, width - 1))}` : plain);
    },
    end() {
      if (drawn && isBar) out.write('\r\x1b[K');
    },
  };
}

/** The directory of the command's bundle and of other files from the build. */
export const bundleDirectory = (): string => dirname(realpathSync(process.argv[1] ?? '.'));

/** Columns of standard output; infinite if it is no terminal. */
export const outputWidth = (): number => terminalOf(process.stdout).width;
