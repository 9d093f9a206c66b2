import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './bundles.ts';

/** What a page promises, and the test that it names for it. */
export interface PagePromise {
  /** The first column. */
  readonly name: string;
  /** Below test/, less `.test.ts`. */
  readonly file: string;
  /** How the test's title begins; '' for the whole file. */
  readonly title: string;
  /** Paths that the row names besides the test. */
  readonly code: readonly string[];
}

/** Rows of a page's tables whose last column is a test file and how a title in it begins. */
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

/** What the row names and is not there. */
export function missingFrom({ file, title, code }: PagePromise): string | undefined {
  const path = join(root, 'test', `${file}.test.ts`);
  if (!existsSync(path)) return `there is no ${path}`;
  if (!readFileSync(path, 'utf8').includes(title)) return `${file} has no test that begins with: ${title}`;
  const lost = code.find((one) => !existsSync(join(root, one)));
  return lost === undefined ? undefined : `there is no ${lost}`;
}

/**
 * The promises that none of the tests that passed has shown.
 * @param passed full titles of passed tests by file, as in PagePromise
 */
export function notShown(
  promises: readonly PagePromise[],
  passed: ReadonlyMap<string, readonly string[]>,
): readonly PagePromise[] {
  return promises.filter(({ file, title }) => {
    const titles = passed.get(file) ?? [];
    // A title that is put together in the test is found by no text: then the file's other tests speak for it.
    const isLiteral = titles.some((one) => one.includes(title));
    return !isLiteral && (titles.length === 0 || isWhole(file, title));
  });
}

/** Whether the title stands in the file as the whole beginning of one that is written out. */
function isWhole(file: string, title: string): boolean {
  const text = readFileSync(join(root, 'test', `${file}.test.ts`), 'utf8');
  return text.includes(`it('${title}`) || text.includes(`describe('${title}`);
}
