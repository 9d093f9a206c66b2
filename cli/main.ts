#!/usr/bin/env node
import packageJson from '../package.json' with { type: 'json' };

/** Everything else is imported after this check: an older Node.js fails to load it, with a stack trace. */
const oldest = packageJson.engines.node.replace(/^>=/, '');
if (isOlder(process.versions.node, oldest)) {
  process.stderr.write(
    `plumbline: needs Node.js ${oldest} or newer; this is ${process.version} (${process.execPath})\n`,
  );
  process.exitCode = 2;
} else {
  await import('./start.ts');
}

function isOlder(version: string, bound: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = bound.split('.').map(Number);
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
}
