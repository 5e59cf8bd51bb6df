const base = require('@jupyterlab/testing/lib/jest-config')(__dirname);

module.exports = {
  ...base,
  reporters: ['default'],
  roots: ['<rootDir>/labextension'],
  // JupyterLab's own packages are published as ES modules only, too.
  transformIgnorePatterns: base.transformIgnorePatterns.map(pattern =>
    pattern.replace('(?!', '(?!@jupyterlab/|')
  )
};
