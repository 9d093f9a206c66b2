import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';

/** The directory of the command's bundle and of other files from the build. */
export const bundleDirectory = (): string => dirname(realpathSync(process.argv[1] ?? '.'));
