// Given to a daemon with --require, beside --expose-gc: on SIGUSR2 it collects its garbage and writes down what is left.
const { renameSync, writeFileSync } = require('node:fs');

process.on('SIGUSR2', () => {
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  const resources = {};
  for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1;
  const file = `${process.env.PLUMBLINE_SOAK_DIRECTORY}/${process.pid}.json`;
  writeFileSync(`${file}.tmp`, JSON.stringify({ heap: heapUsed + external, resources }));
  renameSync(`${file}.tmp`, file);
});
