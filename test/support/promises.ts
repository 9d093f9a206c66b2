import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './bundles.ts';

export interface PagePromise {
  readonly name: string;
  readonly file: string;
  /** The start of the test's title; '' for the whole file. */
  readonly title: string;
  readonly code: readonly string[];
}

export function promisesOf(page: string): readonly PagePromise[] {
  const text = readFileSync(join(root, page), 'utf8');
  return [...text.matchAll(/^\| *([^|]*?) *\|(.*)\| `([\w/-]+)` ?([^|]*)\|$/gm)].map(
    ([, name = '', row = '', file = '', title = '']) => ({
      name,
      file,
      title: title.trim(),
      code: [...row.matchAll(/`((?:[\w.-]+\/)+[\w.-]+\.(?:ts|c|yaml))`/g)].map(([, path = '']) => path),
    }),
  );
}

export function missingFrom({ file, title, code }: PagePromise): string | undefined {
  const path = join(root, 'test', `${file}.test.ts`);
  if (!existsSync(path)) return `there is no ${path}`;
  if (!readFileSync(path, 'utf8').includes(title)) return `${file} has no test that begins with: ${title}`;
  const lost = code.find((one) => !existsSync(join(root, one)));
  return lost === undefined ? undefined : `there is no ${lost}`;
}

/** The promises that no passed test has shown. @param passed full titles of passed tests by file, as in PagePromise */
export function notShown(
  promises: readonly PagePromise[],
  passed: ReadonlyMap<string, readonly string[]>,
): readonly PagePromise[] {
  return promises.filter(({ file, title }) => {
    const titles = passed.get(file) ?? [];
    // A title that the test assembles cannot be found as text: then the file's other tests count.
    const isLiteral = titles.some((one) => one.includes(title));
    return !isLiteral && (titles.length === 0 || isWhole(file, title));
  });
}

function isWhole(file: string, title: string): boolean {
  const text = readFileSync(join(root, 'test', `${file}.test.ts`), 'utf8');
  return text.includes(`it('${title}`) || text.includes(`describe('${title}`);
}
