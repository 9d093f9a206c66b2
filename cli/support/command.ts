import { Command, InvalidArgumentError, Option } from 'commander';
import type { OutputFormat } from './output.ts';

/** A command whose module `run.ts` is imported only when it is called: --help and completion do without. */
export class Subcommand extends Command {
  constructor(name: string, description: string, examples = '') {
    super(name);
    this.description(description);
    if (examples !== '') this.addHelpText('after', examples);
  }

  /** The help lists flags in the order of these calls. `usingCluster` connects; failures become one line, status 3. */
  withCluster(): this {
    return this.option('--kubeconfig <path>', 'kubeconfig file; default: KUBECONFIG, else ~/.kube/config')
      .option('--context <name>', 'context of the kubeconfig; default: its current one')
      .option('--as <user>', 'impersonate this user', userName)
      .option(
        '--request-timeout <seconds>',
        'timeout of each request to the cluster, extender or agent; default: 10, or 5 through a port-forward',
        timeoutSeconds,
      );
  }

  withNamespace(): this {
    return this.option('-n, --namespace <name>', 'namespace; default: the namespace of the context', objectName);
  }

  /** Formats in addition to text; the command then calls `print`. */
  withOutput(...formats: readonly Exclude<OutputFormat, 'text'>[]): this {
    const description = `output format instead of text: ${formats.join(', ')}`;
    return this.addOption(new Option('-o, --output <format>', description).choices(formats));
  }

  /** The function gets the arguments in their order, then the flags. */
  runs<Words extends readonly unknown[]>(load: () => Promise<{ run(...words: Words): Promise<void> }>): this {
    return this.action(async (...words: unknown[]) => (await load()).run(...(words as unknown as Words)));
  }
}

/** Parsers of arguments and flags. @throws InvalidArgumentError with the wrong entry */

/** A parser of whole numbers. @param expected in the message about another text */
export const wholeNumber =
  (min: number, max: number, expected: string) =>
  (text: string): number => {
    const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) throw new InvalidArgumentError(`expected ${expected}`);
    return value;
  };

/** At most as many as a QEMU machine may have. */
export const readVcpus = wholeNumber(1, 4096, '1 to 4096 vCPUs');

/** Of an object's name in Kubernetes. */
export const MAX_NAME_CHARACTERS = 253;

/** A name as the API server accepts it in a path. */
function objectName(text: string): string {
  if (text !== '' && text.length <= MAX_NAME_CHARACTERS && !text.includes('/')) return text;
  throw new InvalidArgumentError(`expected a name of 1 to ${MAX_NAME_CHARACTERS} characters without /`);
}

function userName(text: string): string {
  if (!/^[\x21-\x7e]+$/.test(text)) throw new InvalidArgumentError('expected a user name without spaces');
  return text;
}

function timeoutSeconds(text: string): number {
  const [, amount, unit = 's'] = /^(\d{1,4})(s|m)?$/.exec(text) ?? [];
  const value = Number(amount) * (unit === 'm' ? 60 : 1);
  if (amount === undefined || value === 0) throw new InvalidArgumentError('expected seconds, such as 10, 10s or 1m');
  return value;
}

/** Of --watch. */
export function intervalSeconds(text: string): number {
  const value = Number(text);
  if (!(value >= 0.2 && value <= 3600))
    throw new InvalidArgumentError('expected 0.2 to 3600 seconds; give names before --watch');
  return value;
}
