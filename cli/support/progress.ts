import { type Sink, terminalOf } from './terminal.ts';

/** Shows progress on standard error: a bar on a terminal, a plain line at intervals elsewhere. */
export interface Progress {
  /** @param done from 0 to 1 */
  update(done: number, text: string): void;
  /** Removes the bar. Plain lines stay. */
  end(): void;
}

type Out = Sink & Pick<NodeJS.WriteStream, 'write'>;

/** Milliseconds between two updates of the bar, and between two plain lines: shorter work prints nothing. */
const PACE = 50;
const PLAIN_PACE = 10_000;
const BAR = 30;

export function createProgress(out: Out = process.stderr, now: () => number = () => performance.now()): Progress {
  if (out.isTTY !== true) return plainProgress(out, now);
  const { width } = terminalOf(out);
  let last = Number.NEGATIVE_INFINITY;
  let drawn = false;
  return {
    update(done, text) {
      if (now() - last < PACE) return;
      last = now();
      drawn = true;
      const full = Math.round(Math.min(1, Math.max(0, done)) * BAR);
      const bar = `${'█'.repeat(full)}${'░'.repeat(BAR - full)} ${text}`;
      out.write(`\r\x1b[K${bar.slice(0, Math.max(0, width - 1))}`);
    },
    end() {
      if (drawn) out.write('\r\x1b[K');
    },
  };
}

function plainProgress(out: Out, now: () => number): Progress {
  let last = now();
  return {
    update(done, text) {
      if (now() - last < PLAIN_PACE) return;
      last = now();
      out.write(`${String(Math.floor(Math.min(1, Math.max(0, done)) * 100)).padStart(3)} %  ${text}\n`);
    },
    end() {},
  };
}
