"""The gateway: the one way between an agent and the files of its task, archived message by message."""
