import { register } from 'tsx/esm/api';

/** The device plugin's thread where the agent runs from its sources: a thread does not inherit what loads TypeScript. */
register();
await import('./worker.ts');
