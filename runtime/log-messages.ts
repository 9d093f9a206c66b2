export const SHARED_MESSAGES = {
  info: {
    serving: 'with its ports',
    stopping: 'a signal arrived',
    stopped: '',
    'certificate reloaded': '',
    recovered: 'what `warning` names has ended',
  },
  warn: {
    'list or watch failed; keeping the cache and retrying': 'check API server and permissions',
    'object ignored: it cannot be read': 'correct the object',
    'object cannot be read; keeping its last or its minimal form': 'correct the object, as `issues` says',
    'writing an Event failed': 'check the API server',
    'reading the new certificate failed; keeping the old one': 'correct the files',
    'watching the certificate failed; reading it once a minute': 'if it lasts, raise the node’s inotify limits',
    'connection closed: no allowed name in the client certificate': 'see `--client-names`',
  },
  error: {
    'processing an object failed': 'report it, with the object',
    'accepting a connection failed': 'read `err`',
    'the serving certificate is expired or not valid yet': 'renew it, or correct the clocks',
    'background work failed': 'report it',
    'metrics collection failed': 'report it',
    'shutdown deadline exceeded; exiting': 'report it if it repeats',
    'shutdown failed': 'report it',
  },
  fatal: {
    'startup failed': 'correct the cause; the pod restarts',
    'the daemon’s work failed; stopping': 'report it; the pod restarts',
  },
} as const;
