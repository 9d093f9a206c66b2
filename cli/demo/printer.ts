import { styleText } from 'node:util';

/** The result of a step. */
export interface StepReport {
  readonly step: string;
  readonly held: boolean;
  readonly seconds: number;
  readonly data: Readonly<Record<string, unknown>>;
  readonly error?: string;
}

/** Shows the demo's progress: as text while it runs, or as one JSON document at the end. */
export interface Printer {
  readonly color: boolean;
  title(text: string): void;
  /** A line about the current wait. */
  progress(text: string): void;
  lines(lines: readonly string[]): void;
  step(report: StepReport): void;
  /** @param logs directory of the daemons' logs, if they are kept */
  end(held: boolean, seconds: number, logs: string | undefined): void;
}

type Style = Parameters<typeof styleText>[0];

export function createPrinter({ json, color }: { readonly json: boolean; readonly color: boolean }): Printer {
  const reports: StepReport[] = [];
  const say = (text: string) => {
    if (!json) process.stdout.write(`${text}\n`);
  };
  const paint = (style: Style, text: string) => (color ? styleText(style, text) : text);
  return {
    color,
    title: (text) => say(`\n${paint('bold', text)}`),
    progress: (text) => say(paint('dim', `  … ${text}`)),
    lines: (lines) => {
      for (const line of lines) say(`  ${line}`);
    },
    step(report) {
      reports.push(report);
      const time = paint('dim', `(${report.seconds.toFixed(1)} s)`);
      if (report.held) say(`  ${paint('green', '✔')} succeeded ${time}`);
      else say(`  ${paint('red', '✘')} ${report.error ?? 'failed'} ${time}`);
    },
    end(held, seconds, logs) {
      if (json) {
        process.stdout.write(`${JSON.stringify({ held, seconds, logs, steps: reports }, null, 2)}\n`);
        return;
      }
      const count = reports.filter((report) => report.held).length;
      say(
        `\n${paint(held ? 'green' : 'red', `${count} of ${reports.length} steps succeeded`)} in ${seconds.toFixed(1)} s`,
      );
      if (logs !== undefined) say(`the daemons’ logs are in ${logs}`);
    },
  };
}
