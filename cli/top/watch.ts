import { setTimeout as delay } from 'node:timers/promises';
import { KubeError } from '../../kube/errors.ts';
import { endingOf } from '../support/errors.ts';
import type { Sink } from '../support/terminal.ts';

type Out = Sink & Pick<NodeJS.WriteStream, 'write' | 'rows'>;

const ALTERNATE_SCREEN = { enter: '\x1b[?1049h\x1b[?25l', leave: '\x1b[?25h\x1b[?1049l' };

/**
 * Draws anew every so many seconds until the signal: in place on a terminal, which is given back as it was; one after
 * the other elsewhere. What the cluster does not answer is said in the place of a picture, and tried again.
 * @param draw the lines of one picture
 */
export async function watch(
  draw: () => Promise<readonly string[]>,
  seconds: number,
  out: Out,
  signal: AbortSignal,
): Promise<void> {
  const inPlace = out.isTTY === true;
  if (inPlace) out.write(ALTERNATE_SCREEN.enter);
  try {
    let drawn = false;
    while (!signal.aborted) {
      const lines = await draw().catch((error: unknown) => {
        // Only what was there once may come back; a first failure is the command's own.
        if (!drawn || !(error instanceof KubeError)) throw error;
        return [`${new Date().toLocaleTimeString()}: ${endingOf(error).line}; trying again`];
      });
      drawn = true;
      out.write(inPlace ? picture(lines, out.rows ?? 24) : `${lines.join('\n')}\n`);
      await delay(seconds * 1000, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    if (inPlace) out.write(ALTERNATE_SCREEN.leave);
  }
}

/** The whole screen from its corner; each line clears what was right of it, and the last one all below. */
function picture(lines: readonly string[], rows: number): string {
  const shown = lines.length <= rows ? lines : [...lines.slice(0, rows - 1), `… ${lines.length - rows + 1} more lines`];
  return `\x1b[H${shown.map((line) => `${line}\x1b[K`).join('\n')}\x1b[J`;
}
