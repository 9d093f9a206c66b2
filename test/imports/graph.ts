import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

/** One import of a file of the project. */
export interface Import {
  /** Path below the repository's root. */
  readonly file: string;
  /** A path below the repository's root, or the name of a package: `node:fs/promises` is `node:fs`. */
  readonly target: string;
  readonly isPackage: boolean;
}

const SOURCE = /\.(?:ts|tsx|js|cjs|mjs)$/;
/** `import … from`, `export … from`, the last line of a multi-line one, `import '…'`, `import(…)` and `require(…)`. */
const IMPORT = /^(?:import|export|\})[^'\n]*\bfrom '([^']+)'|^import '([^']+)'|\b(?:import|require)\(\s*'([^']+)'/gm;

/** The imports of a source file, in order. */
export function importsOf(file: string, text: string): Import[] {
  return [...text.matchAll(IMPORT)].map(([, ...names]) => {
    const name = names.find((one) => one !== undefined) ?? '';
    const isPackage = !name.startsWith('.');
    return { file, target: isPackage ? packageOf(name) : posix.join(dirname(file), name), isPackage };
  });
}

/** The imports of every source file below the folders. */
export function readImports(root: string, folders: readonly string[]): Import[] {
  return folders
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
    )
    .filter((path) => SOURCE.test(path))
    .flatMap((path) => importsOf(path, readFileSync(join(root, path), 'utf8')));
}

function packageOf(name: string): string {
  return name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/');
}
